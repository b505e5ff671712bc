"""A file lock that only one process at a time can hold."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from bestofn.builders.errors import MachineError


@contextlib.contextmanager
def file_lock(file: Path, busy: str) -> Iterator[None]:
    """Hold the lock ``file`` inside the block. Its folder is created if it does not exist.

    Raises ``MachineError`` with the text ``busy`` if another process holds the lock. Also raises ``MachineError`` if
    the folder cannot be written.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(file, timeout=0)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise MachineError(busy) from None
    except OSError as error:
        raise MachineError(
            f"{file.parent} cannot be written ({error.strerror or error}). Set out=… to a folder that you can write to."
        ) from error
    try:
        yield
    finally:
        lock.release()
