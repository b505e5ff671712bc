"""A language can prepare files once per box, after the second run. Programs cannot change these files."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

from bestofn.builders.records import Execution, Program
from bestofn.sandbox.inside.prepared import Command, Prepared
from bestofn.sandbox.local_sandbox import LocalSandbox
from tests.requirements import need

LISTS_DESCRIPTORS = """
const fs = require('fs');
const names = fs.readdirSync('/proc/self/fd').map((name) => {
  try { return fs.readlinkSync('/proc/self/fd/' + name); } catch { return ''; }
});
console.log(names.filter((name) => name.includes('prepared')).length, process.execArgv.includes('--snapshot-blob'));
"""
FORKS = """
if (process.send) process.send(process.argv.length);
else require('child_process').fork('/tmp/other.js').on('message', (count) => console.log('count', count));
"""
WRITE, TEST = Command(["write"], {}), Command(["test"], {})


class Commands:
    """Runs commands like a box. ``failing`` are the commands that fail."""

    def __init__(self, *failing: Command) -> None:
        self.failing = failing
        self.ran: list[Command] = []

    def __call__(self, command: Command, file: int) -> bool:
        self.ran.append(command)
        if command is WRITE:
            os.write(file, b"content")
        return command not in self.failing


def prepared() -> Prepared:
    return Prepared(lambda memory_mb: [WRITE, TEST])


def test_the_file_is_prepared_once_after_two_runs() -> None:
    file, run = prepared(), Commands()
    file.update(512, run)
    assert file.open(512) is None
    for _ in range(3):
        file.update(512, run)
    assert run.ran == [WRITE, TEST]
    assert file.is_ready(512)
    assert not file.is_ready(256)


def test_another_memory_limit_needs_another_file() -> None:
    file, run = prepared(), Commands()
    for memory_mb in (512, 512, 256, 512, 256, 256):
        file.update(memory_mb, run)
    assert run.ran == [WRITE, TEST] * 2
    assert file.is_ready(256)
    assert file.open(512) is None


@pytest.mark.parametrize("failing", [WRITE, TEST], ids=["write", "test"])
def test_after_a_failed_command_there_is_no_file(failing: Command) -> None:
    file, run = prepared(), Commands(failing)
    for memory_mb in (512, 512, 256, 256):
        file.update(memory_mb, run)
    assert file.open(256) is None
    assert run.ran == [WRITE, TEST][: 1 + (failing is TEST)]


def test_a_kernel_without_such_files_prepares_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: object) -> int:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "memfd_create", refused)
    file, run = prepared(), Commands()
    for _ in range(4):
        file.update(512, run)
    assert file.open(512) is None
    assert run.ran == []


def test_the_file_cannot_be_changed_and_has_no_shared_position() -> None:
    file = prepared()
    for _ in range(2):
        file.update(512, Commands())
    first, second = file.open(512), file.open(512)
    assert first is not None
    assert second is not None
    assert os.read(first, 100) == os.read(second, 100) == b"content"
    with pytest.raises(OSError, match="not permitted"):
        os.truncate(f"/proc/self/fd/{first}", 0)
    for descriptor in (first, second):
        os.close(descriptor)


def test_programs_run_from_a_snapshot_without_its_file(backend: Any) -> None:
    if backend is LocalSandbox:
        need("node")

    async def run() -> list[Execution]:
        async with backend(workers=1) as sandbox:
            listing = Program("javascript", LISTS_DESCRIPTORS)
            forking = Program("javascript", FORKS, files={"other.js": FORKS})
            return [await sandbox.run(program) for program in (*[listing] * 4, forking)]

    *listings, forked = asyncio.run(run())
    assert [(one.status, one.stdout) for one in listings] == [("ok", "0 false\n")] * 4
    assert (forked.status, forked.stdout) == ("ok", "count 2\n"), forked.stderr
