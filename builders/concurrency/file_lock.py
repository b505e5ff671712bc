"""A lock that one process at a time holds."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from bestofn.builders.errors import MachineError


@contextlib.contextmanager
def file_lock(file: Path, busy: str) -> Iterator[None]:
    """Create the folder of ``file``, and hold the lock ``file`` inside the block.

    Raises ``MachineError`` with the text ``busy`` if another process holds it, and if the folder cannot be written.
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
