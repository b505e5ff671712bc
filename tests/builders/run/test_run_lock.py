"""Only one process writes to a run folder at a time. Other processes get a message that names this process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bestofn.builders.concurrency.process import Process, process_from, this_process
from bestofn.builders.errors import MachineError
from bestofn.builders.run import manifest, run_lock
from bestofn.builders.run.run_lock import FILE, RunLock, holder_of, is_being_written


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_lock, "BEAT_S", 0.02)
    monkeypatch.setattr(run_lock, "STALE_S", 0.3)


HOLDS = textwrap.dedent("""
    import sys, time
    from pathlib import Path
    from bestofn.builders.run.run_lock import run_lock

    with run_lock(Path(sys.argv[1])):
        print("locked", flush=True)
        time.sleep(60)
""")


@pytest.fixture
def other(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Yield another process that works in the folder ``tmp_path / "run"``."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(tmp_path / "run")], stdout=subprocess.PIPE, text=True
    ) as one:
        assert one.stdout is not None
        assert one.stdout.readline() == "locked\n"
        yield one
        one.kill()


def test_a_second_process_says_who_works_there(tmp_path: Path, other: subprocess.Popen[str]) -> None:
    message = rf"process {other.pid} on .* works in .*run since .*bestofn status .*out=…"
    with pytest.raises(MachineError, match=message), run_lock.run_lock(tmp_path / "run"):
        raise AssertionError
    assert is_being_written(tmp_path / "run")


def test_the_lock_of_a_killed_process_is_taken_over(
    tmp_path: Path, other: subprocess.Popen[str], caplog: pytest.LogCaptureFixture
) -> None:
    os.kill(other.pid, signal.SIGKILL)
    other.wait()
    assert holder_of(tmp_path / "run") is not None
    assert not is_being_written(tmp_path / "run")
    with run_lock.run_lock(tmp_path / "run"):
        holder = holder_of(tmp_path / "run")
        assert holder is not None
        assert holder.process == this_process()
    assert f"was locked by process {other.pid}" in caplog.text
    assert holder_of(tmp_path / "run") is None


def test_a_process_that_its_parent_has_not_waited_for_has_ended(other: subprocess.Popen[str], tmp_path: Path) -> None:
    holder = holder_of(tmp_path / "run")
    assert holder is not None
    assert holder.process.is_alive() is True
    other.kill()
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
    assert holder.process.is_alive() is False


def test_another_process_with_the_same_pid_is_not_the_holder() -> None:
    earlier = replace(this_process(), started="1")
    assert earlier.is_alive() is False
    assert this_process().is_alive() is True
    assert process_from(json.loads(json.dumps(earlier.as_json()))) == earlier


def test_a_block_inside_a_block_has_the_same_lock_and_another_thread_has_not(tmp_path: Path) -> None:
    errors: list[MachineError] = []

    def work() -> None:
        try:
            with run_lock.run_lock(tmp_path):
                raise AssertionError
        except MachineError as error:
            errors.append(error)

    with run_lock.run_lock(tmp_path) as lock:
        with run_lock.run_lock(tmp_path / ".." / tmp_path.name) as inner:
            assert inner is lock
        assert is_being_written(tmp_path)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert len(errors) == 1
    assert not (tmp_path / FILE).exists()


def write_lock(folder: Path, process: Process, beat_at: float) -> None:
    content = {"process": process.as_json(), "token": "other", "since": beat_at, "beat_at": beat_at, "progress": {}}
    (folder / "new").write_text(json.dumps(content))
    (folder / "new").replace(folder / FILE)


ELSEWHERE = replace(this_process(), boot="another", host="node7", pid=123)


def test_a_lock_of_another_machine_with_a_heartbeat_is_respected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_lock, "STALE_S", 20.0)
    write_lock(tmp_path, ELSEWHERE, run_lock.time.time())
    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(0.02):
            write_lock(tmp_path, ELSEWHERE, run_lock.time.time())

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        with pytest.raises(MachineError, match="process 123 on node7 works in"), run_lock.run_lock(tmp_path):
            raise AssertionError
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("age_s", [0.0, 3600.0], ids=["recent", "old"])
def test_a_lock_of_another_machine_without_a_heartbeat_is_taken_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, age_s: float
) -> None:
    write_lock(tmp_path, ELSEWHERE, run_lock.time.time() - age_s)
    with run_lock.run_lock(tmp_path):
        pass
    assert "was locked by process 123 on node7" in caplog.text
    assert ("Waiting" in caplog.text) == (age_s == 0)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\x00", b'{"process": {}}', b"null"])
def test_a_damaged_lock_is_no_lock(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    assert holder_of(tmp_path) is None
    with run_lock.run_lock(tmp_path):
        assert is_being_written(tmp_path)


def test_a_process_whose_lock_was_taken_over_stops(tmp_path: Path) -> None:
    stopped = threading.Event()
    with run_lock.run_lock(tmp_path) as lock:
        lock.on_lost.append(stopped.set)
        write_lock(tmp_path, ELSEWHERE, run_lock.time.time())
        assert stopped.wait(10)
        with pytest.raises(MachineError, match="another process has taken over"):
            lock.raise_if_lost()
    holder = holder_of(tmp_path)
    assert holder is not None
    assert holder.token == "other", "the lock of the other process is left"


def test_the_heartbeat_records_the_progress(tmp_path: Path) -> None:
    with run_lock.run_lock(tmp_path) as lock:
        lock.progress = lambda: {"total": 7}
        while (holder := holder_of(tmp_path)) is None or not holder.progress:
            pass
        assert holder.progress == {"total": 7}
        assert holder.age_s < 60


def test_only_one_of_many_threads_takes_over_a_stale_lock(tmp_path: Path) -> None:
    write_lock(tmp_path, replace(this_process(), started="1"), 0.0)
    barrier, taken = threading.Barrier(8), []

    def take() -> None:
        lock = RunLock(tmp_path)
        barrier.wait()
        if lock._take(stale_token="") is None:
            taken.append(lock)

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 1


def test_the_manifest_of_a_killed_run_is_interrupted(tmp_path: Path) -> None:
    manifest.write(tmp_path, {"state": "running"})
    with run_lock.run_lock(tmp_path):
        assert manifest.read(tmp_path)["state"] == "running"
    assert manifest.read(tmp_path)["state"] == "interrupted"


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineError, match="cannot be written"), run_lock.run_lock(tmp_path / "file" / "run"):
        raise AssertionError
