"""Finds what sandboxes of dead processes left behind: containers, cgroups and temporary folders.

A process that is killed with SIGKILL removes nothing. Every object of a sandbox therefore names its owner. When
``LocalSandbox`` or ``DockerSandbox`` opens, it removes the objects of owners that no longer run.
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
    """Return a name that only this process has, on all machines: ``host.pid.start``."""
    pid = os.getpid()
    return f"{_host()}.{pid}.{_start_of(pid) or 0}"


def is_dead(name: str) -> bool:
    """Return True if ``name`` is the owner name of a process that ran here and has ended.

    The answer for processes of other machines and containers is always False.
    """
    host, _, process = name.partition(".")
    pid, _, start = process.partition(".")
    if host != _host() or not (pid.isdecimal() and start.isdecimal() and 0 < int(pid) <= _LARGEST_PID):
        return False
    now = _start_of(int(pid))
    return now is not None and now != int(start)


def owner_of(name: str) -> str:
    """Return the owner in the name of a folder or cgroup: ``PREFIX``, the owner, ``-`` and anything; "" if none."""
    return name.removeprefix(PREFIX).partition("-")[0] if name.startswith(PREFIX) else ""


@cache
def _host() -> str:
    """Return a short hash of the name and id of this machine and of the namespace of its process ids."""
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        parts.append(Path("/etc/machine-id").read_text())
    with contextlib.suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:12]


def _start_of(pid: int) -> int | None:
    """Return when a process started, in clock ticks since the machine started; -1 if the process does not run.

    None: it runs, and its start is not known. It belongs to another user, or the system has no /proc.
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
