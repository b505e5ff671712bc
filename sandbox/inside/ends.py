"""Ends the processes of an execution, and finds out how it ended. ``supervisor`` uses it."""

from __future__ import annotations

import contextlib
import os
import signal

from bestofn.sandbox.inside.confine import Caps


def kill(pid: int) -> None:
    """Kill the process ``pid``. Does nothing if the process has ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def end_of(pid: int) -> int:
    """Return a descriptor that becomes readable when ``pid`` ends; -1 if the kernel has no such descriptors."""
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):
        return -1


def status_of(code: int, cpu_s: float, caps: Caps) -> str:
    """Return the status of an execution whose main process ended by itself.

    ``code`` is the exit code; a negative number is the signal that ended the process.
    """
    if code == 0:
        return "ok"
    if code == -signal.SIGXCPU or (code == -signal.SIGKILL and cpu_s >= caps.cpu_s - 0.5):
        return "timeout"
    if code == -signal.SIGKILL:
        return "memory"  # the supervisor did not kill it, so the kernel killed it because memory ran out
    return "error"
