"""The fixed numbers of a child's file descriptors, and functions that read from and write to descriptors.

The supervisor opens these descriptors for each child; the code of the child uses them.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping, Sequence

STDIN, STDOUT, STDERR = 0, 1, 2
RESULT = 3  # results or verdicts for the host
CONTROL = 4  # the start signal
STREAM = 5  # the stream from the host, open until the child has read the body of the request
PREPARED = 9  # the file that the language has prepared; closed before untrusted code runs
FAULT = 8  # pipe to the supervisor, for a fault of the sandbox; closed before untrusted code runs

KEPT = (30, 31)  # the Landlock rulesets; a child closes them after it has applied one
_ABOVE = 40
_HIGHEST = 128


def place(wanted: Mapping[int, int]) -> None:
    """Copy file descriptors to fixed numbers, and close all others except those in ``KEPT``.

    ``wanted`` maps each new number to the existing descriptor. Each descriptor is first copied to a high number,
    because a new number may equal the number of another existing descriptor.
    """
    copies = {target: fcntl.fcntl(source, fcntl.F_DUPFD, _ABOVE) for target, source in wanted.items()}
    for target, copy in copies.items():
        os.dup2(copy, target, inheritable=target != FAULT)  # a new interpreter runs untrusted code
    after = 0
    for target in sorted({*copies, *KEPT}):
        if after < target:  # otherwise close_range(n, n - 1) would close everything
            os.closerange(after, target)
        after = target + 1
    os.closerange(after, _HIGHEST)


def read_exactly(fd: int, count: int) -> bytes:
    """Return ``count`` bytes from ``fd``. Returns fewer bytes only if the stream ends earlier."""
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


def write_parts(fd: int, parts: Sequence[bytes | memoryview]) -> None:
    """Write all ``parts``, with one system call if possible. Their bytes are not copied to another place in memory."""
    written = os.writev(fd, parts)
    for part in parts:
        done = min(written, len(part))
        written -= done
        if done < len(part):
            write_all(fd, memoryview(part)[done:])


def become_stdin(data: bytes) -> None:
    """Make ``data`` the standard input of this process.

    The input is a file in memory, so ``os.fstat(0).st_size`` is its length, as with a redirected file.
    """
    out = os.memfd_create("stdin")
    write_all(out, data)
    os.lseek(out, 0, os.SEEK_SET)
    os.dup2(out, STDIN)
    os.close(out)
