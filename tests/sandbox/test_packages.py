"""Programs in a sandbox can import the Python packages of ``sandbox.packages``."""

from __future__ import annotations

import asyncio
import contextlib
import ensurepip
import functools
import io
import os
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import docker
import pytest

from bestofn.builders.errors import ConfigError
from bestofn.builders.records import Limits, Program
from bestofn.sandbox import image as image_module
from bestofn.sandbox import local_packages as module
from bestofn.sandbox.auto_sandbox import AutoSandbox
from bestofn.sandbox.image import PACKAGES_FOLDER, Image, base_tag
from bestofn.sandbox.inside.start import with_packages
from bestofn.sandbox.local_packages import local_packages
from bestofn.sandbox.packages import checked_names, installed, top_level_paths, wheels_of
from tests.requirements import need

WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def wheel(
    folder: Path, name: str, content: str = "N = 42\n", requires: tuple[str, ...] = (), version: str = "1.0"
) -> None:
    needed = "".join(f"Requires-Dist: {text}\n" for text in requires)
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needed}\n"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        about = f"{name}-{version}.dist-info"
        files = {f"{name}.py": content, f"{about}/METADATA": metadata, f"{about}/WHEEL": WHEEL}
        for path, text in {**files, f"{about}/RECORD": "".join(f"{file},,\n" for file in files)}.items():
            archive.writestr(zipfile.ZipInfo(path), text)  # with a fixed date, so that an image is built only once


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    wheel(tmp_path, "tiny_thing", "from small_part import N\n", ("Small.Part>=1", "absent; extra == 'x'", "not-there"))
    wheel(tmp_path, "small_part")
    wheel(tmp_path, "unrelated")
    return tmp_path


def test_wheels_come_with_what_they_need(wheels: Path) -> None:
    names = [path.name.partition("-")[0] for path in wheels_of(("Tiny.Thing==1.0",), str(wheels))]
    assert names == ["small_part", "tiny_thing"]


def test_a_folder_without_the_wheel_is_refused(wheels: Path) -> None:
    with pytest.raises(ConfigError, match="no wheel of pandas"):
        wheels_of(("pandas",), str(wheels))
    wheel(wheels, "small_part", version="2.0")
    with pytest.raises(ConfigError, match="several wheels"):
        wheels_of(("tiny-thing",), str(wheels))
    (wheels / "broken-1.0-py3-none-any.whl").write_text("no archive")
    with pytest.raises(ConfigError, match="not a wheel"):
        wheels_of(("broken",), str(wheels))


@pytest.mark.parametrize("name", ["../evil", "a b", "--index-url=x", "pandas;rm", ""])
def test_only_names_of_packages_are_taken(name: str) -> None:
    with pytest.raises(ConfigError, match="expected names"):
        checked_names([name], None)


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"sandbox\.wheels"):
        checked_names([], "wheels")
    with pytest.raises(ConfigError, match=r"sandbox\.image"):
        Image.of("debian", "mine:1", ["pandas"], None)


def test_the_tag_depends_on_what_is_in_the_image(wheels: Path) -> None:
    assert Image().tag == base_tag()
    tags = {
        Image.of("debian", None, ["tiny-thing"], None).tag,
        Image.of("debian", None, ["tiny-thing", "six"], None).tag,
        Image.of("debian", None, ["tiny-thing"], str(wheels)).tag,
    }
    wheel(wheels, "small_part", "N = 43\n")
    tags.add(Image.of("debian", None, ["tiny-thing"], str(wheels)).tag)
    assert len(tags) == 4
    assert all(tag.startswith(f"{base_tag()}-") for tag in tags)


def test_a_local_box_sees_the_packages_and_nothing_else_of_the_environment() -> None:
    found = local_packages((), None)
    names = {Path(path).name for path in found.readable}
    assert {"numpy", "sortedcontainers"} <= names
    assert "pyarrow" not in names
    assert {"pandas", "dateutil", "six.py"} <= {Path(path).name for path in local_packages(("pandas",), None).readable}
    with pytest.raises(ConfigError, match="not installed"):
        local_packages(("no-such-package",), None)


def test_wheels_for_local_boxes_are_unpacked_once(
    wheels: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "CACHE", tmp_path / "cache")
    first = local_packages(("tiny-thing",), str(wheels))
    assert first == local_packages(("tiny-thing",), str(wheels))
    assert (Path(first.folders[0]) / "tiny_thing.py").is_file()
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [Path(first.folders[0]).name]


def test_packages_come_after_the_standard_library() -> None:
    path = ["", "/usr/lib/python3.11", "/usr/local/lib/python3.11/dist-packages", "/usr/lib/python3/dist-packages"]
    assert with_packages(path, ["/mine"]) == [*path[:2], "/mine", *path[2:]]
    assert with_packages(path[:2], ["/mine"]) == [*path[:2], "/mine"]


def test_top_level_paths_are_those_of_one_package() -> None:
    (found,) = [one for one in installed(["sortedcontainers"]) if one.name == "sortedcontainers"]
    paths = top_level_paths(found)
    assert "sortedcontainers" in {path.name for path in paths}
    assert all(path.exists() for path in paths)


PROGRAM = """
import numpy as np
from sortedcontainers import SortedList
import tiny_thing
print(int(np.linalg.det(np.eye(50) * 1.0)), list(SortedList([2, 1])), tiny_thing.N)
"""


@pytest.mark.sandbox
@pytest.mark.parametrize("backend", ["docker", "local"])
def test_programs_import_the_packages_on_both_backends(backend: str, wheels: Path, tmp_path: Path) -> None:
    async def run() -> str:
        auto = AutoSandbox(workers=1, packages=["tiny-thing"], wheels=str(wheels))
        sandbox = {one.name: one for one in auto.candidates}[backend]
        async with sandbox:
            await sandbox.opened()
            assert sandbox.python_version
            execution = await sandbox.run(Program("python", PROGRAM, limits=Limits(memory_mb=512)))
            missing = await sandbox.run(Program("python", "import unrelated"))
            assert missing.status == "error"
            return execution.stdout or execution.stderr

    need(backend)
    assert asyncio.run(run()) == "1 [1, 2] 42\n"


@pytest.fixture
def index(wheels: Path, tmp_path: Path) -> Iterator[str]:
    """Serve the wheels as a package index on the loopback interface. Return its address."""
    root = tmp_path / "simple"
    for path in wheels.glob("*.whl"):
        folder = root / path.name.partition("-")[0].replace("_", "-")
        folder.mkdir(parents=True)
        (folder / path.name).write_bytes(path.read_bytes())
        (folder / "index.html").write_text(f'<a href="{path.name}">{path.name}</a>')
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(root))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def build(client: Any, tag: str, dockerfile: str, **files: bytes) -> None:
    """Build a Docker image with the tag ``tag`` from a Dockerfile and files."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name, content in {"Dockerfile": dockerfile.encode(), **files}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    raw.seek(0)
    client.images.build(fileobj=raw, custom_context=True, tag=tag, rm=True)


@pytest.mark.sandbox
def test_packages_come_from_the_index_that_pip_uses(index: str, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip in the image uses the index of its configuration, here on the loopback interface."""
    need("docker")
    client = docker.from_env()
    pip = next(Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl")).read_bytes()
    with_pip = f"bestofn-sandbox:test-{os.getpid()}"
    dockerfile = (
        f"FROM {base_tag()}\nCOPY pip /opt/pip.whl\nENV PYTHONPATH=/opt/pip.whl PIP_INDEX_URL={index} PIP_NO_DEPS=1\n"
    )
    build(client, with_pip, dockerfile, pip=pip)
    monkeypatch.setattr(image_module, "base_tag", lambda: with_pip)
    image = Image.of("debian", None, ["tiny-thing"], None)
    try:
        tag = image.ensure(client, print)
        listed = client.containers.run(tag, ["ls", PACKAGES_FOLDER], remove=True, network_mode="none").decode()
        assert "tiny_thing.py" in listed.split()
    finally:
        for name in (image.tag, with_pip):
            with contextlib.suppress(docker.errors.ImageNotFound):
                client.images.remove(name, force=True)
