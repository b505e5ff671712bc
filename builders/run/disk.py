"""Reports disks that are full or cannot be written, before and during a run."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from bestofn.builders.errors import MachineError

PROBE_BYTES = 1 << 20  # a run needs at least this much disk space before the first request is sent
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


def check_writable(folder: Path) -> None:
    """Write ``PROBE_BYTES`` bytes to a file in ``folder`` and delete it. Raises ``OSError`` if this fails."""
    probe = folder / f".writable-{os.getpid()}"
    try:
        with probe.open("wb") as file:
            file.write(os.urandom(PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    finally:
        probe.unlink(missing_ok=True)


@contextlib.contextmanager
def folder_errors(out: Path) -> Iterator[None]:
    """Convert each ``OSError`` in the block to a ``MachineError``: the run folder ``out`` cannot be written."""
    try:
        yield
    except OSError as error:
        remedy = "Free disk space" if error.errno in DISK_FULL else f"Check {error.filename or out} and its permissions"
        raise MachineError(
            f"the run folder {out} cannot be written ({error.strerror}). No request was sent. "
            f"{remedy}, or set out=… to a folder that you can write to."
        ) from error


@contextlib.contextmanager
def disk_full_as_machine_error() -> Iterator[None]:
    """Convert the error of a full or read-only disk in the block to a ``MachineError`` that says what to do."""
    try:
        yield
    except OSError as error:  # an error of Arrow contains the error number only in its text
        if error.errno not in DISK_FULL and not any(f"errno {number}]" in str(error).lower() for number in DISK_FULL):
            raise
        raise MachineError(
            f"the disk of the run's folder is full or read-only ({error}). Every completion that was paid for is in "
            "the journal. Free disk space, then run the same command again to continue."
        ) from None
