"""Semaphores for ``multiprocessing`` without shared memory, which a box does not have.

``program`` replaces ``_multiprocessing.SemLock`` by ``PipeSemaphore``. A semaphore is a pipe that holds one byte per
unit of its value. Forked processes inherit the pipe.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import struct
import termios
import threading
import time

_RECURSIVE = 0  # the kind of ``multiprocessing.RLock``


class PipeSemaphore:
    """A semaphore over a pipe, with the interface of ``_multiprocessing.SemLock``."""

    SEM_VALUE_MAX = 1 << 15

    def __init__(self, kind: int, value: int, maxvalue: int, name: str, unlink: bool) -> None:
        self.kind, self.maxvalue, self.name = kind, maxvalue, name
        self._out, self._in = os.pipe()
        self.handle = self._out
        os.set_blocking(self._out, False)
        os.write(self._in, b"x" * value)
        self._owner: tuple[int, int] | None = None
        self._depth = 0

    def acquire(self, block: bool = True, timeout: float | None = None) -> bool:
        """Take one unit and return True. Return False if no unit is free before ``timeout`` seconds have passed.

        If ``block`` is False, the method does not wait. If ``timeout`` is None, it waits without a limit.
        """
        if self.kind == _RECURSIVE and self._is_mine():
            self._depth += 1
            return True
        end = None if timeout is None else time.monotonic() + max(timeout, 0)
        while True:
            with contextlib.suppress(BlockingIOError):
                if os.read(self._out, 1):
                    self._owner, self._depth = _thread(), self._depth + 1
                    return True
            left = None if end is None else end - time.monotonic()
            if not block or (left is not None and left <= 0):
                return False
            select.select([self._out], [], [], left)

    def release(self) -> None:
        """Give one unit back.

        Raises ``AssertionError`` if another thread holds the recursive lock, and ``ValueError`` above the maximum
        value.
        """
        if self.kind == _RECURSIVE:
            if not self._is_mine():
                raise AssertionError("attempt to release recursive lock not owned by thread")
            self._depth -= 1
            if self._depth:
                return
        elif self._get_value() >= self.maxvalue:
            raise ValueError("semaphore or lock released too many times")
        else:
            self._depth -= 1
        os.write(self._in, b"x")

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()

    def _count(self) -> int:
        return self._depth

    def _is_mine(self) -> bool:
        return self._depth > 0 and self._owner == _thread()

    def _get_value(self) -> int:
        return struct.unpack("i", fcntl.ioctl(self._out, termios.FIONREAD, b"\0\0\0\0"))[0]

    def _is_zero(self) -> bool:
        return self._get_value() == 0

    def _after_fork(self) -> None:
        self._depth = 0


def _thread() -> tuple[int, int]:
    return os.getpid(), threading.get_ident()
