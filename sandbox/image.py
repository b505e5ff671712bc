"""The Docker image of the sandbox: its tag, and how it is built. ``DockerSandbox`` uses it."""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bestofn.builders.errors import ConfigError, SandboxError
from bestofn.sandbox.packages import checked_names, content_hash, wheels_of

if TYPE_CHECKING:
    from docker import DockerClient

IMAGES = Path(__file__).resolve().parent / "images"
DEBIAN_PACKAGES = {
    "typescript": "node-typescript",
    "cpp": "g++",
    "go": "golang-go",
    "rust": "rustc",
    "java": "default-jdk-headless",
}
PACKAGES_FOLDER = "/usr/local/lib/bestofn-packages"  # folder of an image with packages


@dataclass(frozen=True, slots=True)
class Image:
    """The Docker image in which programs are executed.

    ``ready`` is the name of an image that the user provides. If it is None, bestofn's image is built from ``base``, and
    ``languages`` and ``packages`` are added to it. pip installs packages from the folder ``wheels``, or from an index
    if ``wheels`` is None.
    """

    base: str = "debian:bookworm-slim"
    ready: str | None = None
    packages: tuple[str, ...] = ()
    wheels: str | None = None
    languages: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        base: str,
        ready: str | None,
        packages: Sequence[str],
        wheels: str | None,
        languages: Sequence[str] = (),
    ) -> Image:
        """Return the image for these settings. Raises ``ConfigError`` if they contradict each other."""
        if ready and (packages or languages):
            raise ConfigError(
                f"sandbox.image and sandbox.{'packages' if packages else 'languages'} are both set. Install the "
                "packages in your image, or leave sandbox.image out."
            )
        return cls(base, ready, checked_names(packages, wheels), wheels, checked_languages(languages))

    @property
    def tag(self) -> str:
        """The name and tag of the image.

        The tag contains a hash of the Dockerfiles, the package names and the wheels.
        """
        if self.ready:
            return self.ready
        if not self.packages:
            return self._tag_of_languages()
        lower = self._tag_of_languages()
        settings = hashlib.sha256("\n".join((lower, _packages_file(), *self.packages)).encode())
        return f"{lower}-{content_hash(self._wheels(), settings)}"

    def _tag_of_languages(self) -> str:
        """Return the tag of the image that contains the compilers of ``languages`` but none of ``packages``."""
        if not self.languages:
            return base_tag()
        content = (IMAGES / "Dockerfile.languages").read_bytes() + " ".join(self._debian_packages()).encode()
        return f"{base_tag()}-{'-'.join(self.languages)}-{hashlib.sha256(content).hexdigest()[:8]}"

    def _debian_packages(self) -> list[str]:
        return [DEBIAN_PACKAGES[language] for language in self.languages]

    @property
    def folders(self) -> list[str]:
        """The folders of the image from which programs can import ``packages``; empty if there are no packages."""
        return [PACKAGES_FOLDER] if self.packages else []

    def ensure(self, client: DockerClient, report: Callable[[str], None]) -> str:
        """Build the image if it is missing, and return its tag. Before each build, ``report`` receives a message.

        Raises ``SandboxError`` if the user's image is missing, or if the build fails; then the error quotes the log's
        end.
        """
        from docker.errors import ImageNotFound

        tag = self.tag
        try:
            client.images.get(tag)
        except ImageNotFound:
            if self.ready:
                raise SandboxError(
                    f"the Docker engine has no image {tag} (sandbox.image). Pull or build it first."
                ) from None
            if self.packages:
                Image(self.base, languages=self.languages).ensure(client, report)
            elif self.languages:
                Image(self.base).ensure(client, report)
            report(f"building the image {tag}, which is needed once and takes minutes")
            if self.packages:
                self._build_packages(client, tag)
            elif self.languages:
                self._build_languages(client, tag)
            else:
                self._build_base(client, tag)
        return tag

    def _build_base(self, client: DockerClient, tag: str) -> None:
        from docker.errors import APIError, BuildError

        try:
            client.images.build(path=str(IMAGES), tag=tag, buildargs={"BASE": self.base}, rm=True)
        except (BuildError, APIError) as error:
            raise SandboxError(
                f"the sandbox image could not be built from {self.base}: {_end_of_log(error)}. If no image registry "
                "can be reached, build the image yourself: docker build --network=host "
                f"--build-arg BASE=<a Debian image you have> -t {tag} {IMAGES}"
            ) from error

    def _build_packages(self, client: DockerClient, tag: str) -> None:
        from docker.errors import APIError, BuildError

        wheels = self._wheels()
        arguments = {"IMAGE": self._tag_of_languages(), "PACKAGES": "" if wheels else " ".join(self.packages)}
        network = "none" if wheels else "host"
        try:
            client.images.build(
                fileobj=_context(wheels),
                custom_context=True,
                tag=tag,
                buildargs=arguments,
                network_mode=network,
                rm=True,
            )
        except (BuildError, APIError) as error:
            raise SandboxError(
                f"sandbox.packages could not be installed in the sandbox image: {_end_of_log(error)}. If no package "
                "index can be reached, put the wheels of the packages into a folder and set sandbox.wheels to it."
            ) from error

    def _build_languages(self, client: DockerClient, tag: str) -> None:
        from docker.errors import APIError, BuildError

        packages = " ".join(self._debian_packages())
        try:
            client.images.build(
                path=str(IMAGES),
                dockerfile="Dockerfile.languages",
                tag=tag,
                buildargs={"IMAGE": base_tag(), "PACKAGES": packages},
                network_mode="host",
                rm=True,
            )
        except (BuildError, APIError) as error:
            raise SandboxError(
                "the compilers of sandbox.languages could not be installed in the sandbox image: "
                f"{_end_of_log(error)}. If no Debian mirror can be reached, build an image with {packages} yourself "
                "and set sandbox.image to it."
            ) from error

    def _wheels(self) -> list[Path]:
        return wheels_of(self.packages, self.wheels) if self.wheels else []


def checked_languages(languages: Sequence[str]) -> tuple[str, ...]:
    """Return ``languages`` sorted and without duplicates.

    Raises ``ConfigError`` if no compiler is known for one of them.
    """
    unknown = sorted(set(languages) - set(DEBIAN_PACKAGES))
    if unknown:
        raise ConfigError(
            f"sandbox.languages contains {unknown[0]!r}; expected names among {', '.join(DEBIAN_PACKAGES)}. Python, "
            "JavaScript, Bash and SQL are always available."
        )
    return tuple(sorted(set(languages)))


def base_tag() -> str:
    """Return the tag of bestofn's image without languages and packages. It contains a hash of the Dockerfile."""
    content = (IMAGES / "Dockerfile").read_bytes()
    return f"bestofn-sandbox:{hashlib.sha256(content).hexdigest()[:12]}"


def _packages_file() -> str:
    return (IMAGES / "Dockerfile.packages").read_text(encoding="utf-8")


def _context(wheels: Sequence[Path]) -> io.BytesIO:
    """Return the build context as a tar file. It contains the Dockerfile, and the wheels in the folder ``wheels``."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        content = _packages_file().encode()
        entry = tarfile.TarInfo("Dockerfile")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
        folder = tarfile.TarInfo("wheels")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(folder)
        for path in wheels:
            archive.add(path, arcname=f"wheels/{path.name}")
    raw.seek(0)
    return raw


def _end_of_log(error: Exception) -> str:
    """Return the last 500 characters of the build log; if there is no log, the end of the error's text."""
    lines = [str(line.get("stream") or "") for line in getattr(error, "build_log", ())]
    text = re.sub(r"\x1b\[[0-9;]*m", "", "".join(lines)).strip()
    return (text or str(error))[-500:]
