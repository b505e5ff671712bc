"""The descriptors of a child, each at its fixed place, and reading them exactly."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping

STDIN, STDOUT, STDERR = 0, 1, 2
RESULT = 3  # to the host (or, with a driver, to the driver): results of calls, as plain data
CONTROL = 4  # from the supervisor or the driver: go; then, from the driver, its requests
STREAM = 5  # the wire, until the child has read its own part
FROM_PROGRAM = 6  # the driver's end of RESULT
READY = 7  # the driver's word that it has read its part

KEPT = (30, 31)  # the Landlock rulesets, which the child closes once it has bound itself
_ABOVE = 40
_HIGHEST = 128
_PIPE = 64 << 10


def place(wanted: Mapping[int, int]) -> None:
    """Make descriptor ``target`` a copy of ``source`` for each pair of ``wanted``, and close all others.

    All sources are first copied out of the way, for a target's number may be another source's.
    """
    copies = {target: fcntl.fcntl(source, fcntl.F_DUPFD, _ABOVE) for target, source in wanted.items()}
    for target, copy in copies.items():
        os.dup2(copy, target)
    after = 0
    for target in sorted({*copies, *KEPT}):
        if after < target:  # close_range(n, n - 1) would close everything
            os.closerange(after, target)
        after = target + 1
    os.closerange(after, _HIGHEST)


def read_exactly(fd: int, count: int) -> bytes:
    """``count`` bytes of ``fd``; fewer only at its end."""
    parts = []
    while count:
        part = os.read(fd, min(count, 1 << 20))
        if not part:
            break
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def write_all(fd: int, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def become_stdin(data: bytes) -> None:
    """Make ``data`` the standard input: a pipe where it fits into one, else a file in memory."""
    if len(data) <= _PIPE:
        out, into = os.pipe()
        os.write(into, data)
        os.close(into)
    else:
        out = os.memfd_create("stdin")
        write_all(out, data)
        os.lseek(out, 0, os.SEEK_SET)
    os.dup2(out, STDIN)
    os.close(out)
