"""Limits the memory and the number of processes of a box with cgroups (version 1 or 2).

``local_sandbox`` creates cgroups for each box, below a cgroup that this process may write to.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

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
        """Create cgroups and set their limits. A limit that cannot be set on this machine is omitted without an error.

        The caller must therefore test in the box that both limits work.
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

    def remove(self) -> None:
        """Remove the groups. Waits up to 2 seconds per group until the last processes of the group have ended."""
        for folder in self.folders:
            for _ in range(100):
                try:
                    folder.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.02)


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
    """Return the cgroup of this process and the cgroups above it, nearest first. Only writable cgroups are included."""
    here = mount / own.strip("/")
    above = [here, *[parent for parent in here.parents if parent == mount or parent.is_relative_to(mount)]]
    return [folder for folder in above if os.access(folder, os.W_OK)]
