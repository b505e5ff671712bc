"""The lock of a run folder: at most one process writes to a folder at a time.

The lock is the file ``RUN/.lock``. It names the process that works in the folder. This process writes the file again
every ``BEAT_S`` seconds (the heartbeat). If the process ran on this machine and has ended, the lock is taken over. A
process on another machine or in another container cannot be checked in this way. Its lock is taken over if the
heartbeat does not change for ``STALE_S`` seconds.

The file is read and changed under ``flock``. NFS from version 4 passes ``flock`` on to the server. On a file system
without ``flock``, two processes that start at the same moment on two machines may both get the lock.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from bestofn.builders.concurrency.process import Process, process_from, this_process
from bestofn.builders.errors import FolderInUse, MachineError
from bestofn.builders.records import JsonObject
from bestofn.builders.run.disk import folder_errors

FILE = ".lock"
BEAT_S = 5.0  # seconds between two heartbeats
STALE_S = 30.0  # an unchanged heartbeat of another machine is watched this long before its lock is taken over
OLD_S = 600.0  # a heartbeat of this age is stale at once; clocks of machines differ by less
NO_FLOCK = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)

log = logging.getLogger(__name__)
_held: ContextVar[dict[Path, RunLock]] = ContextVar("_held")


@dataclass(frozen=True, slots=True)
class Holder:
    """The content of a lock. ``since`` and ``beat_at`` are in seconds since 1970, in the clock of ``process``."""

    process: Process
    token: str
    since: float
    beat_at: float
    progress: JsonObject

    @property
    def age_s(self) -> float:
        """The age of the last heartbeat in seconds."""
        return max(0.0, time.time() - self.beat_at)

    def is_working(self) -> bool:
        """Return whether the process seems to run. Does not wait for its next heartbeat."""
        alive = self.process.is_alive()
        return self.age_s < 2 * STALE_S if alive is None else alive


class RunLock:
    """The lock of one run folder, held by this process. ``run_lock`` creates it.

    ``progress`` returns what the heartbeat records about the run. The functions in ``on_lost`` are called if another
    process has taken over the lock; ``is_lost`` is True from then on.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.progress: Callable[[], JsonObject] = dict
        self.on_lost: list[Callable[[], None]] = []
        self.is_lost = False
        self._path = folder / FILE
        self._token = uuid.uuid4().hex
        self._since = time.time()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat_until_stopped, name="heartbeat", daemon=True)

    def acquire(self) -> None:
        """Take the lock. Raises ``FolderInUse`` if another process works in the folder."""
        watched_since, beat, token = time.monotonic(), -1.0, ""
        while (holder := self._take(stale_token=token)) is not None:
            if holder.process.is_alive() is not None or (beat >= 0 and holder.beat_at != beat):
                raise FolderInUse(busy(self.folder, holder))
            if beat < 0:
                beat = holder.beat_at
                log.warning(
                    "%s is locked by %s, last seen %.0f s ago. It cannot be checked whether that process still runs. "
                    "Waiting %.0f s for its next heartbeat.",
                    *(self.folder, holder.process, holder.age_s, STALE_S),
                )
            if time.monotonic() - watched_since >= STALE_S:
                token = holder.token
            else:
                time.sleep(min(1.0, STALE_S / 10))
        self._thread.start()

    def release(self) -> None:
        """Stop the heartbeat and delete the lock, unless another process has taken it over."""
        self._stop.set()
        self._thread.join()
        with contextlib.suppress(OSError), _opened(self._path) as file:
            holder = _parsed(file)
            if holder is not None and holder.token == self._token:
                self._path.unlink()

    def raise_if_lost(self) -> None:
        """Raise ``MachineError`` if another process has taken over the lock."""
        if self.is_lost:
            raise MachineError(
                f"another process has taken over {self.folder}, because this process wrote no heartbeat for "
                f"{STALE_S:.0f} s. This process stops; every completed request is in the journal."
            )

    def _take(self, stale_token: str) -> Holder | None:
        """Write this process into the lock if it is free or stale, and return None. Otherwise return its holder.

        ``stale_token`` is the token of a lock whose heartbeat has not changed for ``STALE_S`` seconds.
        """
        with _opened(self._path) as file:
            holder = _parsed(file)
            if holder is not None:
                alive = holder.process.is_alive()
                if alive or (alive is None and holder.token != stale_token and holder.age_s < OLD_S):
                    return holder
                log.warning(
                    "%s was locked by %s, which has ended without releasing the lock (last seen %.0f s ago). The lock "
                    "is taken over.",
                    *(self.folder, holder.process, holder.age_s),
                )
            self._write(file)
        return None

    def _write(self, file: int) -> None:
        content = {
            "process": this_process().as_json(),
            "token": self._token,
            "since": self._since,
            "beat_at": time.time(),
            "progress": self.progress(),
        }
        text = json.dumps(content, default=str).encode()
        os.pwrite(file, text, 0)  # before the file is shortened: a full disk then leaves the old content
        os.ftruncate(file, len(text))

    def _beat_until_stopped(self) -> None:
        failed = False
        while not self._stop.wait(BEAT_S):
            try:
                self._beat()
            except OSError as error:
                if not failed:
                    log.warning("The heartbeat of %s could not be written: %s", self._path, error)
                failed = True
            if self.is_lost:
                for stop in list(self.on_lost):
                    stop()
                return

    def _beat(self) -> None:
        with _opened(self._path) as file:
            holder = _parsed(file)
            if holder is not None and holder.token != self._token:
                self.is_lost = True
            else:
                self._write(file)


@contextlib.contextmanager
def run_lock(out: Path) -> Iterator[RunLock]:
    """Hold the lock of the run folder ``out`` during the block. The folder is created if it does not exist.

    A nested call in the block yields the same lock. Raises ``FolderInUse`` if another process works in the folder, and
    ``MachineError`` if the folder cannot be written.
    """
    held = _held.get({})
    folder = out.resolve()
    if folder in held:
        yield held[folder]
        return
    lock = RunLock(out)
    with folder_errors(out):
        out.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    reset = _held.set({**held, folder: lock})
    try:
        yield lock
    finally:
        _held.reset(reset)
        lock.release()


def holder_of(out: Path) -> Holder | None:
    """Return the process in the lock of ``out``, which may have ended; None if there is no lock."""
    try:
        file = os.open(out / FILE, os.O_RDONLY)
    except OSError:
        return None
    try:
        with _flock(file, fcntl.LOCK_SH):
            return _parsed(file)
    finally:
        os.close(file)


def is_being_written(out: Path) -> bool:
    """Return whether a process works in the run folder ``out`` now."""
    holder = holder_of(out)
    return holder is not None and holder.is_working()


def busy(out: Path, holder: Holder) -> str:
    """Return the message for a folder in which another process works."""
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(holder.since))
    return (
        f"{holder.process} works in {out} since {since} (last heartbeat {holder.age_s:.0f} s ago). Wait until it has "
        f"ended (`bestofn status {out}` shows its progress), end it, or set out=… to another folder. "
        "No request was sent."
    )


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Open the lock file and hold ``flock`` on it during the block.

    If another process deletes the file before ``flock`` succeeds, a new file is opened.
    """
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            with _flock(file, fcntl.LOCK_EX):
                if _is_same_file(file, path):
                    yield file
                    return
        finally:
            os.close(file)


@contextlib.contextmanager
def _flock(file: int, kind: int) -> Iterator[None]:
    try:
        fcntl.flock(file, kind)
    except OSError as error:
        if error.errno not in NO_FLOCK:
            raise
    yield


def _is_same_file(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _parsed(file: int) -> Holder | None:
    """Return the content of an open lock file.

    Returns None if the file is empty or damaged, because no process then holds the lock.
    """
    try:
        content = json.loads(os.pread(file, 1 << 20, 0))
        process, progress = process_from(content["process"]), content["progress"]
        since, beat_at = float(content["since"]), float(content["beat_at"])
        return Holder(process, str(content["token"]), since, beat_at, progress if isinstance(progress, dict) else {})
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
