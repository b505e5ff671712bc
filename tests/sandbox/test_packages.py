"""The Python packages that programs in a sandbox may import."""

from __future__ import annotations

import asyncio
import sys
import zipfile
from pathlib import Path

import pytest

from bestofn.builders.errors import ConfigError
from bestofn.builders.records import Limits, Program
from bestofn.sandbox import local_packages as module
from bestofn.sandbox.auto_sandbox import AutoSandbox
from bestofn.sandbox.image import Image, base_tag
from bestofn.sandbox.inside.start import with_packages
from bestofn.sandbox.local_packages import local_packages
from bestofn.sandbox.packages import checked_names, installed, top_level_paths, wheels_of


def wheel(
    folder: Path, name: str, content: str = "N = 42\n", requires: tuple[str, ...] = (), version: str = "1.0"
) -> None:
    needed = "".join(f"Requires-Dist: {text}\n" for text in requires)
    metadata = f"Metadata-Version: 2.1\nName: {name}\n{needed}\n"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in ((f"{name}.py", content), (f"{name}-{version}.dist-info/METADATA", metadata)):
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
            assert sandbox.python_version
            execution = await sandbox.run(Program("python", PROGRAM, limits=Limits(memory_mb=512)))
            missing = await sandbox.run(Program("python", "import unrelated"))
            assert missing.status == "error"
            return execution.stdout or execution.stderr

    if sys.platform != "linux":
        pytest.skip("boxes need Linux")
    assert asyncio.run(run()) == "1 [1, 2] 42\n"
