"""Traces that an execution leaves in the counters of its box: process ids, inode numbers, the time of its folder.

A later program in the same box could read the counters, so one program could pass a result to another program.
Therefore ``supervisor`` blurs the counters after each execution that started further processes or created files. After
heavy use, the box is replaced.
"""

from __future__ import annotations

import os

from bestofn.sandbox.inside.confine import FOLDER
from bestofn.sandbox.inside.kernel import new_thread_id

LAST_PID_FILE = "/proc/loadavg"  # its last field is the newest process id in the namespace of the reader
MANY = 512  # after more new processes or files than this, the box is replaced
_LEAST_BLUR = 64


class Traces:
    """The counters of the box, as they were before the current execution.

    ``processes`` is the number of processes and threads that the last program started. ``last_pid_file`` is a
    descriptor of ``LAST_PID_FILE``; -1 if there is none.
    """

    processes = files = inode = 0

    def __init__(self, last_pid_file: int = -1) -> None:
        self._last_pid_file = last_pid_file
        if last_pid_file >= 0 and self._last_pid() != new_thread_id() - 1:
            self._last_pid_file = -1  # a kernel that writes other numbers

    def begin(self) -> None:
        """Set the times of the folder to a constant, and store the counters."""
        self.inode = self.inode or _next_inode()
        try:  # noqa: SIM105 - ``suppress`` would write to seven more pages of memory, which a child shares
            os.utime(FOLDER, (0, 0))
        except OSError:
            pass

    def end(self, newest_pid: int) -> bool:
        """Count the processes and files of the execution.

        Return False if there are so many processes or files that the box must be replaced.

        ``newest_pid`` is the id of the newest process that the supervisor itself started for the execution.
        """
        self.processes = self._last_pid() - newest_pid  # processes and threads have one counter
        before, self.inode = self.inode, _next_inode()
        self.files = self.inode - before - 1
        return self.processes <= MANY and self.files <= MANY

    def _last_pid(self) -> int:
        """Return the newest id of a process or thread of the box."""
        if self._last_pid_file < 0:
            return new_thread_id() - 1
        return int(os.pread(self._last_pid_file, 100, 0).rpartition(b" ")[2])

    def blur(self) -> None:
        """Advance the counters by a random number. Call it before the child of the next execution is started."""
        for _ in range(_blur_of(self.processes)):
            new_thread_id()
        for _ in range(_blur_of(self.files)):
            self.inode = _next_inode()


def _blur_of(used: int) -> int:
    """Return a random number below ``max(2 * used, _LEAST_BLUR)``; 0 if ``used`` is 0 or less."""
    return int.from_bytes(os.urandom(4), "little") % max(_LEAST_BLUR, 2 * used) if used > 0 else 0


def _next_inode() -> int:
    """Return the inode number of a new file in the program's folder; 0 if none can be created. The file is removed."""
    try:
        name = f"{FOLDER}/.inode"
        fd = os.open(name, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600)
    except OSError:
        return 0
    try:
        return os.fstat(fd).st_ino
    finally:
        os.close(fd)
        os.unlink(name)
