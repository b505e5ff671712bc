"""Stores the bytes that an execution writes to its pipes. ``supervisor`` uses it.

The memory is not inherited by children that are forked later, so a later program cannot read an earlier output.
"""

from __future__ import annotations

import contextlib
import mmap
import os

_PIPE = 64 << 10
_MAP_BYTES = 64 << 10  # an output map of at most this size is kept in memory between runs


class Output:
    """Stores the first ``cap`` bytes from one pipe, in memory that forked children do not inherit."""

    def __init__(self) -> None:
        self.map = mmap.mmap(-1, _MAP_BYTES)
        self.map.madvise(mmap.MADV_DONTFORK)
        self.view = memoryview(self.map)
        self.begin(0, -1)

    def begin(self, cap: int, fd: int, most: int | None = None) -> None:
        """Discard the stored bytes and start to collect bytes from ``fd``. If ``fd`` is -1, there is no pipe.

        At most ``cap`` bytes are stored. ``over`` becomes True after more than ``most`` bytes (None: ``cap``).
        """
        if cap + 1 > len(self.view):
            self.view.release()
            self.map.close()
            self.map = mmap.mmap(-1, cap + 1)
            self.map.madvise(mmap.MADV_DONTFORK)
            self.view = memoryview(self.map)
        self.cap, self.fd, self.count = cap, fd, 0
        self.most = cap if most is None else most

    @property
    def over(self) -> bool:
        """Whether the pipe delivered more bytes than allowed."""
        return self.count > self.most

    def read(self) -> bool:
        """Read once from the pipe. Returns False if the pipe is at its end. Bytes beyond ``cap`` are discarded."""
        if self.count <= self.cap:
            got = os.readv(self.fd, [self.view[self.count : self.cap + 1]])
        else:
            got = len(os.read(self.fd, _PIPE))
        self.count += got
        return got > 0

    def drain(self) -> None:
        """Read the remaining bytes and close the pipe. Call it only after all processes of the execution have ended.

        The end of the pipe may not be reached, because a cycle of Unix sockets can keep its other end open for a time.
        """
        os.set_blocking(self.fd, False)
        with contextlib.suppress(BlockingIOError):
            while not self.over and self.read():
                pass
        os.close(self.fd)

    def kept(self) -> memoryview:
        """Return the stored output, at most ``cap`` bytes."""
        return self.view[: min(self.count, self.cap)]

    def forget(self) -> None:
        """Free the memory of a large output. A small memory map is kept for the next execution."""
        if min(self.count, self.cap) > _MAP_BYTES:
            self.map.madvise(mmap.MADV_DONTNEED)
