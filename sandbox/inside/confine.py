"""How a child of the supervisor loses its rights: fresh uid, limits, Landlock, no capabilities, seccomp.

Everything that can be prepared is prepared once in the supervisor; a child only applies it.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable
from typing import NamedTuple

from bestofn.sandbox.inside import kernel
from bestofn.sandbox.inside.descriptors import KEPT
from bestofn.sandbox.inside.landlock import Ruleset, version
from bestofn.sandbox.inside.seccomp import Filter

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
    """The cage of this box.

    With a fresh uid for each run, the supervisor itself enters the cage once, ``share``: its children inherit
    Landlock, seccomp and no_new_privs at no cost, and lose their last rights by changing their uid. Without
    (``uids`` False: a user namespace that holds one uid only), each child enters a cage of its own, for then Landlock's
    scopes are what keeps runs, drivers and the supervisor apart.
    """

    def __init__(self, readable: Iterable[str] = SYSTEM, uids: bool = True) -> None:
        self.uids = uids
        self.landlock = version()
        self._seccomp = Filter()
        self._files = Ruleset(KEPT[0], readable, (FOLDER,), DEVICES)
        self._files_only_read = Ruleset(KEPT[1], readable, (), DEVICES)

    def share(self) -> None:
        """Bind the supervisor to all that its children inherit from it."""
        for which, value in _CONSTANT:
            resource.setrlimit(which, (value, value))
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        if self.uids:
            os.setgroups([])
            self._files.restrict()
            self._seccomp.install()

    def enter(self, uid: int, caps: Caps, writes: bool = True, address_space: bool = True) -> None:
        """Bind the calling child for good. ``address_space`` False: for runtimes that reserve more than they use."""
        memory = caps.memory_mb * _MIB
        for which, value in (
            (resource.RLIMIT_CPU, caps.cpu_s),
            (resource.RLIMIT_FSIZE, caps.disk_mb * _MIB),
            (resource.RLIMIT_NPROC, caps.processes),
            (resource.RLIMIT_AS, memory) if address_space else (resource.RLIMIT_DATA, 2 * memory),
        ):
            resource.setrlimit(which, (value, value))
        if self.uids:
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)  # with the uid go all capabilities
        else:
            (self._files if writes else self._files_only_read).restrict()
            kernel.drop_capabilities()
            self._seccomp.install()
        for fd in KEPT:
            os.close(fd)


_CONSTANT = (
    (resource.RLIMIT_NOFILE, _OPEN_FILES),
    (resource.RLIMIT_STACK, _STACK),
    (resource.RLIMIT_CORE, 0),
    (resource.RLIMIT_MEMLOCK, 0),
    (resource.RLIMIT_MSGQUEUE, 0),
    (resource.RLIMIT_SIGPENDING, 256),
    (resource.RLIMIT_NICE, 0),
    (resource.RLIMIT_RTPRIO, 0),
)
