"""Limits of the machine: each one ends a run with one clear message."""

from __future__ import annotations

import errno
import subprocess
import sys

import pytest

from bestofn.builders.errors import MachineError
from bestofn.builders.run.disk import limits_as_machine_error

CLEAR = [
    (OSError(errno.ENOSPC, "No space left on device"), "full or read-only.*Free disk space"),
    (OSError(errno.EMFILE, "Too many open files"), r"may not open more files.*`ulimit -n 65536`"),
    (RuntimeError("can't start new thread"), r"no more threads or processes.*ulimit -u"),
    (MemoryError("malloc of size 64 failed"), "memory of this process is used up"),
]


@pytest.mark.parametrize(("error", "message"), CLEAR)
def test_a_limit_of_the_machine_is_named_with_its_remedy(error: Exception, message: str) -> None:
    with pytest.raises(MachineError, match=message) as raised, limits_as_machine_error():
        raise error
    assert "run the same command again" in str(raised.value)


@pytest.mark.parametrize("error", [OSError(errno.EBADF, "Bad file descriptor"), RuntimeError("other"), ValueError("x")])
def test_other_errors_are_defects(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, limits_as_machine_error():
        raise error
    assert raised.value is error


def test_the_limit_of_open_files_is_raised_as_far_as_allowed() -> None:
    script = """
import resource
from bestofn.builders.run.disk import allow_open_files

resource.setrlimit(resource.RLIMIT_NOFILE, (64, 200))
allow_open_files()
print(resource.getrlimit(resource.RLIMIT_NOFILE))
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert ended.stdout == "(200, 200)\n", ended.stderr
