"""Faults of the sandbox in a child: the child reports them to the supervisor through a pipe. ``supervisor`` uses it."""

from __future__ import annotations

import contextlib
import os
import traceback

from bestofn.sandbox.inside.descriptors import FAULT, STDERR


def report_fault() -> None:
    """Write the current error to standard error, and report it as a fault of the sandbox.

    The report has no effect once ``close_fault`` was called, because untrusted code may then run in this process.
    """
    os.write(STDERR, traceback.format_exc().encode()[-2000:])
    with contextlib.suppress(OSError):
        os.write(FAULT, b"1")


def read_fault(fd: int) -> bool:
    """Return True if a child has reported a fault of the sandbox, and close the pipe ``fd``.

    All processes that could write to the pipe must have ended.
    """
    os.set_blocking(fd, False)
    try:
        return bool(os.read(fd, 1))
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
