"""Checksums stay correct while another process replaces tables and shards."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bestofn.builders.concurrency.file_lock import ProcessLock
from bestofn.builders.errors import DamagedFile
from bestofn.builders.tables import checksums
from bestofn.builders.tables.checksums import check_part, check_tables, checksum, marker_of


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[Callable[[int], None]]:
    """Return a function that locks ``tmp_path``, as if by the process with the given number."""
    held = ProcessLock(tmp_path / ".lock")

    def as_process(pid: int) -> None:
        assert held.acquire()
        note = tmp_path / ".lock.json"
        note.write_text(json.dumps({**json.loads(note.read_text()), "pid": pid}))

    yield as_process
    held.release()


def table(out: Path, content: bytes) -> tuple[Path, Callable[[], object]]:
    """Write a table. Return its file, and a function that writes its checksum."""
    file = out / "dpo" / "train.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file, lambda: (out / checksums.FILE).write_text(checksums.of_tables(out, [file]))


def shard(out: Path, content: bytes) -> tuple[Path, Callable[[], object]]:
    """Write a shard. Return its file, and a function that writes its marker."""
    part = out / "shards" / "00000.parquet"
    part.parent.mkdir(parents=True, exist_ok=True)
    part.write_bytes(content)
    facts = {"fingerprint": "f", "rows": 1, "stages": [], "failed": {}, "part": checksum(part)}
    return part, lambda: marker_of(part).write_text(json.dumps(facts))


CASES = {"table": (table, lambda out: check_tables(out)), "shard": (shard, lambda out: check_part(part_of(out)))}


def part_of(out: Path) -> Path:
    return out / "shards" / "00000.parquet"


@pytest.mark.parametrize("kind", CASES)
def test_a_reader_waits_until_the_checksum_is_replaced_too(
    tmp_path: Path, kind: str, lock: Callable[[int], None]
) -> None:
    write, check = CASES[kind]
    write(tmp_path, b"old")[1]()
    _, finish = write(tmp_path, b"new")
    lock(os.getpid() + 1)
    reader = threading.Thread(target=check, args=(tmp_path,))
    failed: list[object] = []
    threading.excepthook, hook = (lambda failure: failed.append(failure.exc_value)), threading.excepthook
    try:
        reader.start()
        time.sleep(0.1)
        finish()
        reader.join()
    finally:
        threading.excepthook = hook
    assert not failed


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("locked", [False, True])
def test_damage_is_reported_at_once_if_no_other_process_works(
    tmp_path: Path, kind: str, locked: bool, lock: Callable[[int], None]
) -> None:
    write, check = CASES[kind]
    write(tmp_path, b"old")[1]()
    write(tmp_path, b"new")
    if locked:
        lock(os.getpid())
    with pytest.raises(DamagedFile, match="does not match"):
        check(tmp_path)


def test_damage_is_reported_after_some_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lock: Callable[[int], None]
) -> None:
    monkeypatch.setattr(checksums, "LONGEST_S", 0.1)
    table(tmp_path, b"old")[1]()
    table(tmp_path, b"new")
    lock(os.getpid() + 1)
    with pytest.raises(DamagedFile):
        check_tables(tmp_path)
