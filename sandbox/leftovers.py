"""Finds containers, cgroups and temporary folders that remain from sandboxes whose process has ended.

A process that is killed with SIGKILL removes nothing. Therefore the name or label of each container, cgroup and folder
contains its *owner*: the process that created it. When ``LocalSandbox`` or ``DockerSandbox`` opens, it removes
everything whose owner has ended.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
from functools import cache
from pathlib import Path

_LARGEST_PID = 1 << 22
PREFIX = "bestofn-box-"  # of the names of folders and cgroups


def owner() -> str:
    """Return a name for this process that is unique among all processes of all machines: ``host.pid.start``."""
    pid = os.getpid()
    return f"{_host()}.{pid}.{_start_of(pid) or 0}"


def is_dead(name: str) -> bool:
    """Return True if ``name`` is the owner name of a process that ran on this machine and has ended.

    Processes of other machines and containers cannot be checked; for them the result is False.
    """
    host, _, process = name.partition(".")
    pid, _, start = process.partition(".")
    if host != _host() or not (pid.isdecimal() and start.isdecimal() and 0 < int(pid) <= _LARGEST_PID):
        return False
    now = _start_of(int(pid))
    return now is not None and now != int(start)


def owner_of(name: str) -> str:
    """Return the owner in a name of the form ``PREFIX`` + owner + ``-`` + any text; "" if ``name`` has another form."""
    return name.removeprefix(PREFIX).partition("-")[0] if name.startswith(PREFIX) else ""


@cache
def _host() -> str:
    """Return a short hash of this machine's name, its id and the namespace of its process ids."""
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        parts.append(Path("/etc/machine-id").read_text())
    with contextlib.suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:12]


def _start_of(pid: int) -> int | None:
    """Return the start time of a process in clock ticks since the machine started; -1 if the process does not run.

    The result is None if the process runs but its start time cannot be read, for example on a system without /proc.
    """
    with contextlib.suppress(OSError, IndexError, ValueError):
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19])
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return -1
    except PermissionError:
        pass
    return None
