"""Ends the processes of a run, and finds out how a run ended. ``supervisor`` uses it."""

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


def status_of(code: int, cpu_s: float, caps: Caps) -> str:
    """Return the status of a run that ended by itself, from its exit code and its CPU time."""
    if code == 0:
        return "ok"
    if code == -signal.SIGXCPU or (code == -signal.SIGKILL and cpu_s >= caps.cpu_s - 0.5):
        return "timeout"
    if code == -signal.SIGKILL:
        return "memory"  # the supervisor did not kill it, so the kernel killed it because memory ran out
    return "error"
