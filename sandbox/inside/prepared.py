"""A file that a language prepares once per box, so that its later children start faster.

``supervisor`` prepares it between two runs, when no program exists. The file is in memory and cannot be changed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

_ADD_SEALS = 1033  # from linux/fcntl.h, as the next one; the module ``fcntl`` lacks them on some versions of Python
_ALL_SEALS = 0x1 | 0x2 | 0x4 | 0x8  # F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE
_RUNS_BEFORE = 2  # with the same memory limit; a box that runs few programs of the language prepares nothing


class Command(NamedTuple):
    """A command that prepares or tests the file, and the text of its standard input."""

    words: list[str]
    environment: dict[str, str]
    stdin: str = ""


Run = Callable[[Command, int], bool]
"""A function that runs a command, given the descriptor of the file. Returns False if the command failed."""


class Prepared:
    """The prepared file of one language, for one memory limit.

    ``commands(memory_mb)`` returns commands that write the file and then test it. If one of them fails, there is no
    file, and none is prepared again.
    """

    def __init__(self, commands: Callable[[int], Sequence[Command]]) -> None:
        self._commands = commands
        self._fd = -1
        self._memory_mb = self._runs = 0
        self._is_possible = True

    def update(self, memory_mb: int, run: Run) -> None:
        """Count a program with the limit ``memory_mb``, and prepare the file after ``_RUNS_BEFORE`` of them."""
        if memory_mb != self._memory_mb:
            self._forget()
            self._memory_mb, self._runs = memory_mb, 0
        self._runs += 1
        if self._runs == _RUNS_BEFORE and self._is_possible:
            self._is_possible = self._prepare(run)

    def is_ready(self, memory_mb: int) -> bool:
        """Return True if there is a file for the limit ``memory_mb``."""
        return self._fd >= 0 and memory_mb == self._memory_mb

    def open(self, memory_mb: int) -> int | None:
        """Return a new descriptor of the file; None if there is no file for ``memory_mb``.

        Each child opens the file itself. If the children shared a descriptor, a program could see how far an earlier
        program has read.
        """
        if not self.is_ready(memory_mb):
            return None
        return os.open(f"/proc/self/fd/{self._fd}", os.O_RDONLY)

    def _prepare(self, run: Run) -> bool:
        """Prepare the file. Returns False if a command fails or the kernel lacks files in memory that can be sealed."""
        with contextlib.suppress(OSError):
            self._fd = os.memfd_create("prepared", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            write, *tests = self._commands(self._memory_mb)
            if run(write, self._fd):
                os.fchmod(self._fd, 0o444)
                fcntl.fcntl(self._fd, _ADD_SEALS, _ALL_SEALS)
                if all(run(test, self._fd) for test in tests):
                    return True
        self._forget()
        return False

    def _forget(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
