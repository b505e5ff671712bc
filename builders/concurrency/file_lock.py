"""Locks of files: one process at a time holds a lock, and the others can say which one.

The library ``filelock`` locks a file with ``flock``, so the lock of a killed process is free at once. A file beside it,
the note, names the process that holds the lock. On a file system without ``flock``, ``filelock`` creates the file
instead, and breaks the lock of a process of this machine that has ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bestofn.builders.errors import MachineError
from bestofn.builders.records import JsonObject
from bestofn.builders.redaction.secrets import redacted_override, redacted_text

TRY_S = 1.0  # ``is_held`` of another process holds the lock for a moment
COMMAND_CHARS = 200


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that a note names, with what it has told about its work.

    ``since`` and ``at`` are when it took the lock and when it wrote the note, in seconds since 1970.
    """

    pid: int
    host: str
    command: str
    since: float
    at: float
    progress: JsonObject = field(default_factory=dict)

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"

    @property
    def is_this_process(self) -> bool:
        """Whether the note is from this process."""
        return (self.pid, self.host) == (os.getpid(), socket.gethostname())

    @property
    def age_s(self) -> float:
        """The age of the note in seconds."""
        return max(0.0, time.time() - self.at)


class ProcessLock:
    """The lock ``file``, which this process takes with ``acquire`` and gives back with ``release``."""

    def __init__(self, file: Path) -> None:
        from filelock import FileLock

        self.file = file
        self._lock = FileLock(file, thread_local=False)
        self._since = 0.0

    def acquire(self, wait_s: float | None = None) -> bool:
        """Take the lock and write the note. Returns False if another process holds the lock for ``wait_s`` seconds.

        None means ``TRY_S``. Raises ``OSError`` if the files cannot be written.
        """
        from filelock import Timeout

        self.file.open("ab").close()  # an error here would look like a lock that is held
        try:
            self._lock.acquire(timeout=TRY_S if wait_s is None else wait_s)
        except Timeout:
            return False
        try:
            self._since = time.time()
            self.note({})
        except OSError:
            self._lock.release()
            raise
        return True

    def note(self, progress: Mapping[str, object]) -> None:
        """Write the note with ``progress``. Only the process that holds the lock may call this."""
        command = redacted_text(shlex.join(map(redacted_override, sys.argv)))[:COMMAND_CHARS]
        holder = Holder(os.getpid(), socket.gethostname(), command, self._since, time.time(), dict(progress))
        note = _note(self.file)
        temporary = note.with_name(f"{note.name}.tmp")
        temporary.write_text(json.dumps(asdict(holder), default=str))
        os.replace(temporary, note)

    def release(self) -> None:
        """Delete the note and give the lock back, if this process holds it."""
        if not self._lock.is_locked:
            return
        with contextlib.suppress(OSError):
            _note(self.file).unlink()
        self._lock.release()


def holder_of(file: Path) -> Holder | None:
    """Return the process that the note of the lock ``file`` names; None if there is no readable note.

    A killed process leaves its note. ``is_held`` tells whether a process holds the lock.
    """
    try:
        content = json.loads(_note(file).read_bytes())
        return Holder(
            int(content["pid"]),
            str(content["host"]),
            str(content["command"]),
            float(content["since"]),
            float(content["at"]),
            dict(content["progress"]),
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def is_held(file: Path) -> bool:
    """Return whether a process, perhaps this one, holds the lock ``file``."""
    if not file.exists():
        return False
    from filelock import FileLock, Timeout

    try:
        with FileLock(file, timeout=0, thread_local=False):
            return False
    except Timeout:
        return True
    except OSError:  # the file belongs to another user, or the file system is read-only
        return holder_of(file) is not None


@contextlib.contextmanager
def file_lock(file: Path, busy: str) -> Iterator[None]:
    """Hold the lock ``file`` inside the block. Its folder is created if it does not exist.

    Raises ``MachineError`` with the text ``busy`` and the other process if another process holds the lock. Also raises
    ``MachineError`` if the folder cannot be written.
    """
    lock = ProcessLock(file)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        is_mine = lock.acquire()
    except OSError as error:
        raise MachineError(
            f"{file.parent} cannot be written ({error.strerror or error}). Set out=… to a folder that you can write to."
        ) from error
    if not is_mine:
        holder = holder_of(file)
        raise MachineError(f"{busy} It is {holder} ({holder.command})." if holder else busy)
    try:
        yield
    finally:
        lock.release()


def _note(file: Path) -> Path:
    return file.with_name(f"{file.name}.json")
