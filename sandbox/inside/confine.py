"""Restricts a child of the supervisor: separate uid, resource limits, Landlock, no capabilities, seccomp.

The supervisor prepares the restrictions once. Each child only applies them.
"""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bestofn.sandbox.inside import kernel
from bestofn.sandbox.inside.descriptors import KEPT
from bestofn.sandbox.inside.landlock import Ruleset, version
from bestofn.sandbox.inside.seccomp import Filter

FOLDER = "/tmp"  # the only folder that a program may write to
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/proc")
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")

_MIB = 1 << 20
_OPEN_FILES = 256
_STACK = 64 * _MIB


class Caps(NamedTuple):
    """The resource limits of one execution."""

    cpu_s: int  # seconds per process
    memory_mb: int  # MiB per process
    processes: int  # maximum number of processes of the run's uid
    disk_mb: int  # MiB per file


def in_box(folder: str) -> str:
    """Return the path of a host folder inside a box.

    A folder below ``FOLDER`` gets another path, because programs write to ``FOLDER``. Other folders keep their paths.
    """
    return f"/host{folder}" if folder.startswith(f"{FOLDER}/") else folder


class Confinement:
    """The restrictions that all children of this box apply.

    With ``uids``, each execution gets a separate uid. The supervisor then restricts itself once (``share``). The
    children inherit Landlock, seccomp and no_new_privs, and lose all other rights when they change to their uid.
    Without ``uids``, all processes have the same uid. Only Landlock then isolates the processes from each other, so
    each child applies Landlock and seccomp itself.

    With ``other_kernel``, a container runtime has its own kernel, which isolates the programs. Then Landlock and the
    less important limits may be missing. Otherwise a missing restriction raises ``OSError``. ``packages`` are the
    folders that Python may list to import from them.
    """

    def __init__(
        self,
        readable: Iterable[str] = SYSTEM,
        uids: bool = True,
        other_kernel: bool = False,
        packages: Sequence[str] = (),
    ) -> None:
        self.uids, self.other_kernel = uids, other_kernel
        self.landlock = version()
        self._seccomp = Filter()
        self._files = self._files_only_read = None
        if self.landlock or not other_kernel:
            self._files = Ruleset(KEPT[0], readable, (FOLDER,), DEVICES, packages)
            self._files_only_read = Ruleset(KEPT[1], readable, (), DEVICES, packages)

    def share(self) -> None:
        """Restrict the supervisor itself. Its children inherit these restrictions."""
        for which, value in _CONSTANT:
            with contextlib.suppress(*((ValueError, OSError) if self.other_kernel else ())):
                resource.setrlimit(which, (value, value))
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        if self.uids:
            os.setgroups([])
            if self._files is not None:
                self._files.restrict()
            self._seccomp.install()

    def enter(self, uid: int, caps: Caps, writes: bool = True, address_space: bool = True) -> None:
        """Confine the calling child permanently.

        If ``writes`` is False and the box has no separate uids, the child may not write to any folder. If
        ``address_space`` is False, the memory limit applies to the data segment instead of the address space. Node
        needs this, because it reserves more address space than it uses.
        """
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
            os.setresuid(uid, uid, uid)  # this also drops all capabilities
        else:
            files = self._files if writes else self._files_only_read
            if files is not None:
                files.restrict()
            kernel.drop_capabilities()
            self._seccomp.install()
        if self._files is not None:
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
