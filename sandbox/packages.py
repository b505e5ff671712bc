"""Python packages that programs in a sandbox may import: wheels of a folder, or packages installed with bestofn.

``image`` puts wheels into a Docker image. ``LocalSandbox`` makes installed packages, or unpacked wheels, readable in
its boxes.
"""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from bestofn.builders.errors import ConfigError

DEFAULT = ("numpy", "sortedcontainers", "pytest")
"""The packages that the harnesses of APPS and LeetCode have. The Docker image contains them."""


def normal(name: str) -> str:
    """Return the name of a package in the normalized form of PEP 503, in which names can be compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def checked_names(packages: Sequence[str], wheels: str | None) -> tuple[str, ...]:
    """Return the names of the packages, sorted. A version may follow a name, as in ``pandas==2.2.3``.

    Raises ``ConfigError`` if one is not the name of a package, or if ``wheels`` is set without packages.
    """
    if wheels and not packages:
        raise ConfigError(
            "sandbox.wheels is set, but sandbox.packages is empty. Set sandbox.packages to the packages to install."
        )
    for name in packages:
        if not re.fullmatch(r"[A-Za-z0-9][\w.-]*(?:\[[\w,-]+\])?(?:[=<>!~]=?[\w.*,=<>!~]+)?", name):
            raise ConfigError(f"sandbox.packages contains {name!r}; expected names of Python packages, such as pandas.")
    return tuple(sorted(set(packages)))


def wheels_of(packages: Sequence[str], folder: str) -> list[Path]:
    """Return the wheels in ``folder`` of the packages and of their dependencies.

    A dependency without a wheel in ``folder`` is left out.

    Raises ``ConfigError`` if the folder has no wheel, or several, for one of the packages.
    """
    found: dict[str, list[Path]] = {}
    for path in sorted(Path(folder).expanduser().glob("*.whl")):
        found.setdefault(normal(path.name.partition("-")[0]), []).append(path)
    for name in packages:
        if _bare(name) not in found:
            raise ConfigError(
                f"sandbox.wheels={folder} has no wheel of {name}. Download it with its dependencies: "
                f"pip download --only-binary=:all: --dest {folder} {name}"
            )
    chosen = _closure(packages, lambda name: _requirements_of_wheel(found[name]) if name in found else None)
    return [_only(found[name], folder) for name in chosen]


def _only(paths: Sequence[Path], folder: str) -> Path:
    if len(paths) > 1:
        names = ", ".join(path.name for path in paths)
        raise ConfigError(f"sandbox.wheels={folder} has several wheels of one package ({names}); keep one of them.")
    return paths[0]


def _requirements_of_wheel(paths: Sequence[Path]) -> list[str]:
    """Return the requirements in the metadata of the wheel. Raises ``ConfigError`` if the file is not a wheel."""
    path = paths[0]
    try:
        with zipfile.ZipFile(path) as archive:
            metadata = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            text = archive.read(metadata).decode("utf-8", "replace")
    except (OSError, zipfile.BadZipFile, StopIteration):
        raise ConfigError(f"{path} is not a wheel; download it again.") from None
    return re.findall(r"^Requires-Dist: *(.+)$", text.partition("\n\n")[0], re.MULTILINE)


def content_hash(wheels: Iterable[Path], start: hashlib._Hash) -> str:
    """Return twelve hexadecimal digits: the hash ``start``, updated with the names and contents of the wheels."""
    for path in wheels:
        start.update(path.name.encode() + path.read_bytes())
    return start.hexdigest()[:12]


def unpack(wheels: Iterable[Path], target: Path) -> None:
    """Unpack the wheels into the folder ``target``."""
    for path in wheels:
        with zipfile.ZipFile(path) as archive:
            archive.extractall(target)


def installed(packages: Sequence[str]) -> list[Distribution]:
    """Return the installed packages among ``packages`` and their dependencies.

    Raises ``ConfigError`` if one of ``packages`` is not installed. A missing dependency raises no error.
    """
    for name in packages:
        if _distribution(_bare(name)) is None:
            raise ConfigError(
                f"sandbox.packages: {name} is not installed in bestofn's environment. Install it (pip install {name}), "
                "or set sandbox.wheels to a folder with its wheel."
            )

    def requirements(name: str) -> list[str] | None:
        found = _distribution(name)
        return None if found is None else found.requires or []

    return [found for name in _closure(packages, requirements) if (found := _distribution(name)) is not None]


def _distribution(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def top_level_paths(found: Distribution) -> list[Path]:
    """Return the files and folders of an installed package that lie directly in ``site-packages``."""
    tops = {path.parts[0] for path in found.files or () if path.parts[0] not in ("..", "__pycache__", "/")}
    paths = (Path(str(found.locate_file(top))) for top in sorted(tops))
    return [path for path in paths if path.suffix != ".pth" and path.exists()]


def _closure(packages: Iterable[str], requirements: Callable[[str], list[str] | None]) -> list[str]:
    """Return the names of the packages and of all their direct and indirect requirements.

    ``requirements`` returns None for a missing package, which is then left out. For example, a requirement may be only
    for another operating system.
    """
    known: list[str] = []
    waiting = [_bare(name) for name in packages]
    while waiting:
        name = waiting.pop()
        needed = None if name in known else requirements(name)
        if needed is not None:
            known.append(name)
            waiting += [_bare(text) for text in needed if "extra ==" not in text]
    return sorted(known)


def _bare(requirement: str) -> str:
    """Return the normalized package name at the start of a requirement such as ``numpy>=2; python_version > "3.8"``."""
    return normal(re.split(r"[^\w.-]", requirement.strip(), maxsplit=1)[0])
