"""Identifies a process, so that another process can find out whether it still runs.

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
    """A process on any machine.

    ``boot`` identifies the running kernel, and ``namespace`` the set of PIDs (each container has its own). A PID names
    the same process only if both are equal. ``started`` distinguishes processes that get the same PID in turn.
    """

    pid: int
    host: str
    boot: str
    namespace: str
    started: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"

    def as_json(self) -> dict[str, str | int]:
        """Return the fields as plain data."""
        return asdict(self)

    @property
    def is_on_this_machine(self) -> bool:
        """Whether the process runs on the kernel of this process, possibly in another container."""
        return self.boot == this_process().boot

    def is_alive(self) -> bool | None:
        """Return whether the process runs; None if this cannot be found out from here."""
        here = this_process()
        if (self.boot, self.namespace) != (here.boot, here.namespace):
            return None
        return _started(self.pid) == self.started


def process_from(values: Mapping[str, object]) -> Process:
    """Create a ``Process`` from plain data. Raises ``KeyError`` or ``ValueError`` if the data is malformed."""
    names = ("host", "boot", "namespace", "started")
    return Process(int(str(values["pid"])), *(str(values[name]) for name in names))


def this_process() -> Process:
    """Return the current process."""
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
    """Return the start time of a process in ticks since the kernel started; None if the process does not run.

    Without /proc, returns "" for each process that runs.
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
