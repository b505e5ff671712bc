"""Folders and cgroups of ended processes are removed. Those of running processes and of other machines are kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bestofn.sandbox import cgroups, leftovers, local_sandbox
from bestofn.sandbox.leftovers import PREFIX, is_dead, owner, owner_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the test reads /proc")


def ended() -> str:
    """Return the owner name of a process that has ended."""
    process = subprocess.Popen(["/bin/true"])
    name = f"{owner().partition('.')[0]}.{process.pid}.{leftovers._start_of(process.pid)}"
    process.wait()
    return name


def test_this_process_lives_and_an_ended_one_does_not() -> None:
    assert not is_dead(owner())
    assert is_dead(ended())


def test_a_new_process_with_the_same_number_is_another_one() -> None:
    host, pid, start = owner().split(".")
    assert is_dead(f"{host}.{pid}.{int(start) - 1}")


@pytest.mark.parametrize("name", ["", "x", "a.b.c", "0123456789ab.1.2", "..", "0123456789ab.999999.1-2"])
def test_a_process_of_another_machine_is_never_dead(name: str) -> None:
    assert not is_dead(name)


@example("²", "1")
@example("9" * 40, "1")
@given(st.text(max_size=8), st.text(max_size=8))
def test_any_label_is_read(pid: str, start: str) -> None:
    is_dead(f"{owner().partition('.')[0]}.{pid}.{start}")
    is_dead(pid + start)


def test_a_process_that_cannot_be_read_is_not_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """If /proc hides a process from this user, the process still counts as running."""
    host = owner().partition(".")[0]

    def hidden(path: Path) -> bytes:
        raise FileNotFoundError(path)

    monkeypatch.setattr(leftovers.Path, "read_bytes", hidden)
    assert not is_dead(f"{host}.{os.getpid()}.5")
    monkeypatch.setattr(leftovers.os, "kill", refused)
    assert not is_dead(f"{host}.77.5")


def refused(pid: int, number: int) -> None:
    raise PermissionError


def test_the_owner_is_read_from_a_name() -> None:
    assert owner_of(f"{PREFIX}{owner()}-3-abcd") == owner()
    assert owner_of("bestofn-box-k2j3h4") == "k2j3h4"
    assert owner_of("something-else") == ""


def test_folders_of_dead_owners_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_sandbox.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(cgroups, "_hierarchies", list)
    dead = tmp_path / f"{PREFIX}{ended()}-1-x"
    kept = [tmp_path / f"{PREFIX}{owner()}-1-x", tmp_path / f"{PREFIX}oldname", tmp_path / "other"]
    for folder in (dead, *kept):
        folder.mkdir()
    full = tmp_path / f"{PREFIX}{ended()}-2-x"
    full.mkdir()
    (full / "file").touch()
    local_sandbox.sweep()
    assert not dead.exists()
    assert all(folder.exists() for folder in (*kept, full))


def test_cgroups_of_dead_owners_are_removed_with_their_processes() -> None:
    group = cgroups.Cgroups.create(f"{PREFIX}{ended()}-1", memory_mb=64, processes=8)
    if not group.folders:
        pytest.skip("no cgroup is writable here")
    process = subprocess.Popen(["/bin/sleep", "60"])
    for path in group.joins:
        Path(path).write_text(str(process.pid))
    removed = cgroups.sweep()
    assert set(group.folders) <= set(removed)
    assert process.wait() == -9
    assert not any(folder.exists() for folder in group.folders)


def test_a_process_of_another_namespace_is_not_killed(tmp_path: Path) -> None:
    """The process id 0 is skipped, because a signal to 0 would end this process and its group."""
    (tmp_path / "cgroup.procs").write_text("0\n41\n0\n")
    assert cgroups._processes(tmp_path) == [41]
    assert cgroups._processes(tmp_path / "gone") == []


def test_a_group_knows_whether_its_memory_ran_out() -> None:
    group = cgroups.Cgroups.create(f"{PREFIX}{owner()}-memory", memory_mb=32, processes=8)
    try:
        if not group.folders:
            pytest.skip("no cgroup is writable here")
        assert not group.ran_out_of_memory()
        join = "".join(f"echo 0 > {path}; " for path in group.joins)
        subprocess.run(["/bin/sh", "-c", f"{join} head -c 100000000 /dev/zero | tail -c 90000000 > /dev/null"])
        assert group.ran_out_of_memory()
    finally:
        group.remove()
