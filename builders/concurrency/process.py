"""Identifies a process, so that another process can find out whether it is still running.

Used by the lock of a run folder (``builders.run.run_lock``) and by claims in a journal (``builders.sampling.claims``).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

BOOT = Path("/proc/sys/kernel/random/boot_id")
PID_NAMESPACE = Path("/proc/self/ns/pid")
ENDED = ("Z", "X")  # states of a process that has ended and that its parent has not read yet


@dataclass(frozen=True, slots=True)
class Process:
    """The identity of a process on any machine.

    ``boot`` identifies the running kernel. ``namespace`` identifies the set of PIDs; each container has its own. PIDs
    can be compared only if ``boot`` and ``namespace`` are equal. ``started`` is the start time, because a PID can be
    used again after its process has ended.
    """

    pid: int
    host: str
    boot: str
    namespace: str
    started: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"

    def as_json(self) -> dict[str, str | int]:
        """Return the fields as a dict that can be written as JSON."""
        return asdict(self)

    @property
    def is_on_this_machine(self) -> bool:
        """Whether the process runs on the same kernel as the current process, possibly in another container."""
        return self.boot == this_process().boot

    def is_alive(self) -> bool | None:
        """Return whether the process is running; None if it is on another machine or in another container."""
        here = this_process()
        if (self.boot, self.namespace) != (here.boot, here.namespace):
            return None
        return _started(self.pid) == self.started


def process_from(values: Mapping[str, object]) -> Process:
    """Return the ``Process`` with the fields ``values``. Raises ``KeyError`` or ``ValueError`` if one is malformed."""
    names = ("host", "boot", "namespace", "started")
    return Process(int(str(values["pid"])), *(str(values[name]) for name in names))


def this_process() -> Process:
    """Return the identity of the current process."""
    return _process(os.getpid())  # not cached across a fork


@cache
def _process(pid: int) -> Process:
    host = socket.gethostname()
    try:
        boot, namespace = BOOT.read_text().strip(), str(PID_NAMESPACE.stat().st_ino)
    except OSError:  # not Linux: PIDs are compared on hosts with the same name
        boot, namespace = host, ""
    return Process(pid, host, boot, namespace, _started(pid) or "")


def _started(pid: int) -> str | None:
    """Return the start time of a process in clock ticks since the kernel started; None if it is not running.

    Without /proc, returns "" for each running process.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return "" if not BOOT.exists() and _accepts_signals(pid) else None
    except ProcessLookupError:
        return None
    return None if fields[0] in ENDED else fields[19]


def _accepts_signals(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
