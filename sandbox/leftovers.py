"""Finds what sandboxes of dead processes left behind: containers, cgroups and temporary folders.

A process that is killed with SIGKILL removes nothing. Every object of a sandbox therefore names its owner, and the next
sandbox that opens removes the objects of owners that no longer run (``LocalSandbox``, ``DockerSandbox``).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
from functools import cache

PREFIX = "bestofn-box-"  # of the names of folders and cgroups


def owner() -> str:
    """Return the name of this process among all processes of all machines: ``host.pid.start``."""
    pid = os.getpid()
    return f"{_host()}.{pid}.{_start_of(pid)}"


def is_dead(name: str) -> bool:
    """Return True if ``name`` is the owner name of a process that ran here and has ended.

    The answer for processes of other machines and containers is always False.
    """
    host, _, process = name.partition(".")
    pid, _, start = process.partition(".")
    if host != _host() or not (pid.isdigit() and start.isdigit()):
        return False
    return _start_of(int(pid)) != int(start)


def owner_of(name: str) -> str:
    """Return the owner in the name of a folder or cgroup: ``PREFIX``, the owner, ``-`` and anything; "" if none."""
    return name.removeprefix(PREFIX).partition("-")[0] if name.startswith(PREFIX) else ""


@cache
def _host() -> str:
    """Return a short hash of the names of this machine and of the namespace of its process ids."""
    namespace = ""
    with contextlib.suppress(OSError):
        namespace = os.readlink("/proc/self/ns/pid")
    return hashlib.sha256(f"{socket.gethostname()} {namespace}".encode()).hexdigest()[:12]


def _start_of(pid: int) -> int:
    """Return when a process started, in clock ticks since the machine started; -1 if the process does not run.

    Without /proc the start is not known: the result is then 0 for every process that runs.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        if os.path.exists("/proc/self/stat"):
            return -1
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return -1
    except PermissionError:
        pass  # it runs, under another user
    return 0
