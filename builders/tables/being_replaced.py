"""Waits for a process that is replacing files of a run, so that a reader does not report the change as damage.

The process replaces a file first, and the marker with its checksum afterwards. Used by ``tables.checksums``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from bestofn.builders.concurrency.file_lock import holder_of, is_held
from bestofn.builders.errors import DamagedFile

LOCK = ".lock"  # see ``builders.run.run_lock``
LONGEST_S = 30.0  # a reader waits at most this long for the marker
POLL_S = 0.05


def checked_again(check: Callable[[], None], out: Path, marker: Path) -> None:
    """Call ``check``. If it raises ``DamagedFile`` and ``marker`` changes afterwards, call ``check`` again.

    If another process works in the run folder ``out``, it may be about to replace ``marker``. Then this function waits
    for the change, at most ``LONGEST_S`` seconds in total.
    """
    until = time.monotonic() + LONGEST_S
    while True:
        before = _content(marker)
        try:
            check()
            return
        except DamagedFile:
            if not _changes(marker, before, out, until):
                raise


def _changes(marker: Path, before: bytes | None, out: Path, until: float) -> bool:
    """Wait until ``marker`` has other content than ``before``, and return True.

    Returns False if the content is the same at the time ``until`` (``time.monotonic``), or when no other process works
    in ``out``.
    """
    while _content(marker) == before:
        if time.monotonic() >= until or not _is_written_by_another(out):
            return _content(marker) != before
        time.sleep(POLL_S)
    return True


def _is_written_by_another(out: Path) -> bool:
    holder = holder_of(out / LOCK)
    return holder is not None and not holder.is_this_process and is_held(out / LOCK)


def _content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None
