"""Limits the memory and the number of processes of a box with cgroups (version 1 or 2).

``local_sandbox`` creates cgroups for each box, below a cgroup that this process may write to.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

from bestofn.sandbox.leftovers import PREFIX, is_dead, owner_of

log = logging.getLogger(__name__)

_MIB = 1 << 20


@dataclass(slots=True)
class Cgroups:
    """The cgroups created for one box."""

    folders: list[Path] = field(default_factory=list)

    @property
    def joins(self) -> list[str]:
        """Return the paths of the files to which a process writes "0" to join the groups."""
        return [str(folder / "cgroup.procs") for folder in self.folders]

    @classmethod
    def create(cls, name: str, *, memory_mb: int, processes: int) -> Cgroups:
        """Create cgroups and set their limits.

        A limit that this machine does not support is left out without an error (see ``limit_memory_to``).
        """
        made = cls()
        memory = memory_mb * _MIB
        for version, controllers, mount, own in _hierarchies():
            for parent in _parents(mount, own):
                folder = parent / name
                try:
                    if version == 2:
                        with contextlib.suppress(OSError):
                            (parent / "cgroup.subtree_control").write_text("+memory +pids")
                    folder.mkdir()
                    if version == 2:
                        _set(
                            folder,
                            {"pids.max": processes, "memory.max": memory, "memory.swap.max": 0, "memory.oom.group": 0},
                        )
                    elif "memory" in controllers:
                        _set(folder, {"memory.limit_in_bytes": memory, "memory.memsw.limit_in_bytes": memory})
                    elif "pids" in controllers:
                        _set(folder, {"pids.max": processes})
                except OSError:
                    with contextlib.suppress(OSError):
                        folder.rmdir()
                    continue
                made.folders.append(folder)
                break
        return made

    def limit_memory_to(self, memory_mb: int) -> bool:
        """Return whether the kernel reports ``memory_mb`` as the memory limit of one of these groups."""
        limits = [_number(folder / name) for folder in self.folders for name in ("memory.max", "memory.limit_in_bytes")]
        return memory_mb * _MIB in limits

    def ran_out_of_memory(self) -> bool:
        """Return whether the kernel killed a process of these groups because their memory ran out."""
        return any(_killed_for_memory(folder) for folder in self.folders)

    def remove(self) -> None:
        """Remove the groups. Waits up to 2 seconds per group until the last processes of the group have ended."""
        for folder in self.folders:
            _remove(folder)


def sweep() -> list[Path]:
    """Remove the cgroups that ended processes of bestofn left behind. Kill the processes in these cgroups.

    Returns the folders of the removed cgroups.
    """
    found = [
        folder
        for _, _, mount, own in _hierarchies()
        for parent in _parents(mount, own)
        for folder in parent.glob(f"{PREFIX}*")
        if is_dead(owner_of(folder.name))
    ]
    for folder in found:
        for pid in _processes(folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    return [folder for folder in found if _remove(folder)]


def _remove(folder: Path) -> bool:
    """Remove one cgroup and return True. Return False if it still has processes after 2 seconds."""
    for _ in range(100):
        try:
            folder.rmdir()
            return True
        except FileNotFoundError:
            return True
        except OSError:
            time.sleep(0.02)
    log.warning("The cgroup %s was not removed: it still has processes. The next sandbox removes it.", folder)
    return False


def _processes(folder: Path) -> list[int]:
    """Return the ids of the processes of a cgroup.

    The kernel lists processes of other namespaces as 0; they are left out.
    """
    try:
        return [int(pid) for pid in (folder / "cgroup.procs").read_text().split() if pid != "0"]
    except OSError:
        return []


def _killed_for_memory(folder: Path) -> bool:
    """Return whether the kernel has killed a process of the cgroup because memory ran out (counter ``oom_kill``)."""
    for name in ("memory.events", "memory.oom_control"):
        with contextlib.suppress(OSError, ValueError):
            counters = dict(line.split() for line in (folder / name).read_text().splitlines())
            return int(counters.get("oom_kill", 0)) > 0
    return False


def _number(file: Path) -> int | None:
    """Return the number in ``file``; None if there is no such file, or if it contains a word such as "max"."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


_OPTIONAL = ("memory.swap.max", "memory.memsw.limit_in_bytes", "memory.oom.group")


def _set(folder: Path, values: dict[str, int]) -> None:
    for name, value in values.items():
        with contextlib.suppress(OSError) if name in _OPTIONAL else contextlib.nullcontext():
            (folder / name).write_text(str(value))


def _hierarchies() -> list[tuple[int, set[str], Path, str]]:
    """Return (version, controllers, mount point, path) of each hierarchy that has a memory or pids controller.

    The path is the cgroup of this process, below the mount point.
    """
    own: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            for controller in controllers.split(","):
                own[controller] = path
    hierarchies = []
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mounts").read_text().splitlines():
            _, mount, kind, options, *_ = line.split()
            if kind == "cgroup2" and _has_controllers(Path(mount)):
                hierarchies.append((2, {"memory", "pids"}, Path(mount), own.get("", "/")))
            elif kind == "cgroup":
                controllers = {"memory", "pids"} & set(options.split(","))
                if controllers:
                    hierarchies.append((1, controllers, Path(mount), own.get(next(iter(controllers)), "/")))
    return hierarchies


def _has_controllers(mount: Path) -> bool:
    with contextlib.suppress(OSError):
        return {"memory", "pids"} <= set((mount / "cgroup.controllers").read_text().split())
    return False


def _parents(mount: Path, own: str) -> list[Path]:
    """Return the cgroups in which this process may create cgroups, nearest first.

    Only its own cgroup and the cgroups above it are considered.
    """
    here = mount / own.strip("/")
    above = [here, *[parent for parent in here.parents if parent == mount or parent.is_relative_to(mount)]]
    return [folder for folder in above if os.access(folder, os.W_OK)]
