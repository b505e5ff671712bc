"""The fixed numbers of a child's file descriptors, and functions for exact reads and writes.

The supervisor assigns the descriptors; programs, drivers and languages use them.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping

STDIN, STDOUT, STDERR = 0, 1, 2
RESULT = 3  # of a program: results to the host, or answers to the driver; of a driver: verdicts to the host
CONTROL = 4  # of a program: the start signal, then the driver's requests; of a driver: the other end of that pipe
STREAM = 5  # the stream from the host, open until the child has read its part of the request
FROM_PROGRAM = 6  # of a driver: the program's answers
READY = 7  # of a driver: pipe on which it reports that it has read its part

KEPT = (30, 31)  # the Landlock rulesets; a child closes them after it has applied one
_ABOVE = 40
_HIGHEST = 128
_PIPE = 64 << 10


def place(wanted: Mapping[int, int]) -> None:
    """Make each descriptor ``target`` in ``wanted`` a copy of its ``source``, and close all other descriptors.

    All sources are first copied to high numbers, because a target may have the same number as another source.
    """
    copies = {target: fcntl.fcntl(source, fcntl.F_DUPFD, _ABOVE) for target, source in wanted.items()}
    for target, copy in copies.items():
        os.dup2(copy, target)
    after = 0
    for target in sorted({*copies, *KEPT}):
        if after < target:  # otherwise close_range(n, n - 1) would close everything
            os.closerange(after, target)
        after = target + 1
    os.closerange(after, _HIGHEST)


def read_exactly(fd: int, count: int) -> bytes:
    """Return ``count`` bytes from ``fd``; fewer only if the other side has closed it."""
    parts = []
    while count:
        part = os.read(fd, min(count, 1 << 20))
        if not part:
            break
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def write_all(fd: int, data: bytes | memoryview) -> None:
    """Write all of ``data``, with several writes if needed."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def become_stdin(data: bytes) -> None:
    """Make ``data`` the standard input: as a pipe if it fits into the pipe's buffer, else as a file in memory."""
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
