"""How a run ended: its status, and whether its process had to wait for a processor. ``supervisor`` calls it."""

from __future__ import annotations

import contextlib
import os
import signal

from bestofn.sandbox.inside.confine import Caps


def kill(pid: int) -> None:
    """Kill ``pid`` if it still runs."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def end_of(pid: int) -> int:
    """Return a descriptor that is readable once ``pid`` has ended; -1 if the kernel does not offer such descriptors."""
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):
        return -1


def waited_for_processor(pid: int) -> float:
    """Return how many seconds the killed child ``pid`` was ready to run but had to wait for a processor.

    Call this function before the child is reaped. It waits until the child has ended, because the kernel counts the
    last wait only then. Returns 0.0 if the kernel does not report this time.
    """
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        with open(f"/proc/{pid}/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def status_of(code: int, cpu_s: float, caps: Caps) -> str:
    """Return the status of a run that ended by itself, from its exit code and its CPU time."""
    if code == 0:
        return "ok"
    if code == -signal.SIGXCPU or (code == -signal.SIGKILL and cpu_s >= caps.cpu_s - 0.5):
        return "timeout"
    if code == -signal.SIGKILL:
        return "memory"  # the supervisor did not kill it, so the kernel killed it because memory ran out
    return "error"
