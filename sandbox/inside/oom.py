"""Makes the kernel kill the children before the supervisor when the memory of a box runs out.

The kernel kills the process that uses most memory. It counts memory in pipes, sockets and in-memory files for no
process. If a child fills such memory, the kernel could therefore kill the supervisor. To prevent this, children have
the highest ``oom_score_adj``.
"""

from __future__ import annotations

import os

from bestofn.sandbox.inside import kernel

_PATH = "/proc/self/oom_score_adj"
_FIRST, _AFTER_CHILDREN = b"1000", b"0"


class OomOrder:
    """Forks children that the kernel kills before the supervisor.

    Landlock does not allow a child to change its ``oom_score_adj``, but a child inherits this value. The supervisor
    therefore changes its own value during the fork.
    """

    def __init__(self) -> None:
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # otherwise the file belongs to root outside the box
        try:
            self._fd = os.open(_PATH, os.O_WRONLY | os.O_CLOEXEC)
            os.pwrite(self._fd, _AFTER_CHILDREN, 0)
        except OSError:
            self._fd = -1  # a kernel without this order; then any process may be killed first
        finally:
            kernel.prctl(kernel.PR_SET_DUMPABLE, 0)

    def fork(self) -> int:
        """Fork this process. Returns 0 in the child."""
        if self._fd < 0:
            return kernel.fork()
        pid = -1
        os.pwrite(self._fd, _FIRST, 0)
        try:
            pid = kernel.fork()
            return pid
        finally:
            if pid:  # not in the child: its descriptor also refers to the supervisor's file
                os.pwrite(self._fd, _AFTER_CHILDREN, 0)
