"""How a child of the supervisor loses its rights: fresh uid, limits, Landlock, no capabilities, seccomp.

Everything that can be prepared is prepared once in the supervisor; a child only applies it.
"""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterable
from typing import NamedTuple

from sandbox.inside import kernel
from sandbox.inside.descriptors import KEPT
from sandbox.inside.landlock import Ruleset, version
from sandbox.inside.seccomp import Filter

FOLDER = "/tmp"  # the one place that a program may write to
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/proc")
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")

_MIB = 1 << 20
_OPEN_FILES = 256
_STACK = 64 * _MIB


class Caps(NamedTuple):
    """What one process may use."""

    cpu_s: int
    memory_mb: int
    processes: int
    disk_mb: int


class Confinement:
    """The cage of this box. ``uids`` False: this user namespace holds one uid only, which all runs share."""

    def __init__(self, readable: Iterable[str] = SYSTEM, uids: bool = True) -> None:
        self.uids = uids
        self._seccomp = Filter()
        self.landlock = version()
        self._files = Ruleset(KEPT[0], readable, (FOLDER,), DEVICES)
        self._files_only_read = Ruleset(KEPT[1], readable, (), DEVICES)

    def enter(self, uid: int, caps: Caps, writes: bool = True, address_space: bool = True) -> None:
        """Bind the calling process for good. ``address_space`` False: for runtimes that reserve far more than they use."""
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # else its own /proc entry is not its own
        with contextlib.suppress(OSError):
            fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
            os.write(fd, b"1000")  # when memory runs out, the program goes and not the supervisor
            os.close(fd)
        _limit(caps, address_space)
        if self.uids:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        (self._files if writes else self._files_only_read).restrict()
        for fd in KEPT:
            os.close(fd)
        kernel.drop_capabilities()
        self._seccomp.install()


def _limit(caps: Caps, address_space: bool) -> None:
    memory = caps.memory_mb * _MIB
    limits = (
        (resource.RLIMIT_CPU, caps.cpu_s),
        (resource.RLIMIT_FSIZE, caps.disk_mb * _MIB),
        (resource.RLIMIT_NPROC, caps.processes),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
        (resource.RLIMIT_STACK, _STACK),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_SIGPENDING, 256),
        (resource.RLIMIT_NICE, 0),
        (resource.RLIMIT_RTPRIO, 0),
        (resource.RLIMIT_AS if address_space else resource.RLIMIT_DATA, memory if address_space else 2 * memory),
    )
    for which, value in limits:
        resource.setrlimit(which, (value, value))
