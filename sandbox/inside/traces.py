"""Traces that a run leaves in the counters of its box: process ids, inode numbers, the time of its folder.

A later run in the same box could read them, so one program could pass an answer to another. Therefore ``supervisor``
blurs the counters after each run that started further processes or created files. After heavy use, the box is replaced.
"""

from __future__ import annotations

import contextlib
import os

from bestofn.sandbox.inside.confine import FOLDER
from bestofn.sandbox.inside.kernel import new_thread_id

MANY = 512  # after more new processes or files than this, the box is replaced
_LEAST_BLUR = 64


class Traces:
    """The counters of the box, as they were before the current run.

    ``processes`` is the number of processes and threads that the program started in the last run.
    """

    processes = files = inode = 0

    def begin(self) -> None:
        """Set the times of the folder to a constant, and remember the counters."""
        self.inode = self.inode or _next_inode()
        with contextlib.suppress(OSError):
            os.utime(FOLDER, (0, 0))

    def end(self, newest_pid: int) -> bool:
        """Count the processes and files of the run. Returns False if there were so many that the box must be replaced.

        ``newest_pid`` is the process id of the newest process that the supervisor itself started for the run.
        """
        self.processes = new_thread_id() - newest_pid - 1  # processes and threads have one counter
        before, self.inode = self.inode, _next_inode()
        self.files = self.inode - before - 1
        return self.processes <= MANY and self.files <= MANY

    def blur(self) -> None:
        """Advance the counters by a random number. Call it before the child of the next run is started."""
        for _ in range(_blur_of(self.processes)):
            new_thread_id()
        for _ in range(_blur_of(self.files)):
            self.inode = _next_inode()


def _blur_of(used: int) -> int:
    """Return a random number below twice ``used``, or below ``_LEAST_BLUR`` if this is larger; 0 if ``used`` is 0."""
    return int.from_bytes(os.urandom(4), "little") % max(_LEAST_BLUR, 2 * used) if used > 0 else 0


def _next_inode() -> int:
    """Return the number of a new file in the program's folder. The file is removed."""
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
