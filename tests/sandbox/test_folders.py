"""The folder of a program is emptied by the supervisor if it contains few files, and by a child process otherwise."""

from __future__ import annotations

import os
from pathlib import Path

from bestofn.sandbox.inside.folders import empty_folder, remove_few_files


def test_a_few_files_are_removed_and_their_targets_are_not(tmp_path: Path) -> None:
    (target := tmp_path / "target").write_text("kept")
    (folder := tmp_path / "folder").mkdir()
    assert remove_few_files(str(folder))
    (folder / "closed").write_text("x")
    (folder / "closed").chmod(0)
    (folder / "link").symlink_to(target)
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "pipe")
    assert remove_few_files(str(folder))
    assert os.listdir(folder) == []
    assert target.read_text() == "kept"


def test_folders_and_many_files_are_left_to_a_child_process(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    assert not remove_few_files(str(tmp_path))
    assert os.listdir(tmp_path) == ["inner"]
    for number in range(100):
        (tmp_path / str(number)).touch()
    assert not remove_few_files(str(tmp_path))
    assert len(os.listdir(tmp_path)) == 101
    empty_folder(str(tmp_path))
    assert os.listdir(tmp_path) == []
