"""Runs one stage over the rows of one shard. Called by ``builders.run.pipeline.run_shard``.

All rows of a shard are in flight at once, in the event loop of the process (``builders.concurrency.event_loop``), so
that no row waits for another. The shards start their rows one shard after another: the first shard then also ends
first, and its next stage runs while the requests of the other shards are in flight. The result is an Arrow table, which
a cache file can keep.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from bestofn.builders.arrow_types import Table, features_from, read_stream, write_stream
from bestofn.builders.concurrency.event_loop import Loop
from bestofn.builders.concurrency.tasks import run_together
from bestofn.builders.protocols import Stage
from bestofn.builders.records import Row
from bestofn.builders.run import manifest
from bestofn.builders.tables.arrow_rows import to_table
from bestofn.builders.tables.checksums import checksum, matches

log = logging.getLogger(__name__)

RowDone = Callable[[str, Row], None]
"""A callback that is called after each row with the stage's name and the added columns."""


def apply_stage(
    rows: Sequence[Row],
    stage: Stage,
    loop: Loop,
    *,
    cache_file: Path | None = None,
    row_done: RowDone = lambda name, added: None,
) -> Table:
    """Run ``stage`` over ``rows`` and return a table of the columns that it adds. The order of the rows is unchanged.

    If ``cache_file`` is set, the result is stored in this file, and its checksum in a second file. The next call with
    the same file reads the result from it if the checksum is right. The name of the file must therefore contain the
    fingerprint of the rows and the settings.

    If the stage raises an exception for a row, the run stops. If a failure must not stop the run, the stage stores it
    in the row and raises nothing.
    """
    if cache_file is not None and _is_intact(cache_file):
        return read_stream(cache_file)
    added = to_table(loop.run(_run_rows(stage, rows, row_done, loop.starting)), features_from(stage.adds))
    if cache_file is not None:
        temporary = cache_file.with_name(f"{cache_file.name}.{os.getpid()}.tmp")
        write_stream(added, temporary)
        written = checksum(temporary)
        os.replace(temporary, cache_file)
        manifest.write_text(_checksum_of(cache_file), json.dumps(written) + "\n")
    return added


def delete_cached(cache_file: Path) -> None:
    """Delete the cached result of a stage and its checksum."""
    cache_file.unlink(missing_ok=True)
    _checksum_of(cache_file).unlink(missing_ok=True)


def is_damaged(cache_file: Path) -> bool:
    """Return whether ``cache_file`` exists and does not match its checksum, as after a killed process."""
    try:
        expected = json.loads(_checksum_of(cache_file).read_text("utf-8"))
    except (OSError, ValueError):
        expected = None
    return cache_file.exists() and not (isinstance(expected, dict) and matches(cache_file, expected))


def _checksum_of(cache_file: Path) -> Path:
    return cache_file.with_suffix(".sum")


def _is_intact(cache_file: Path) -> bool:
    """Return whether ``cache_file`` exists and matches its checksum. A damaged file is deleted."""
    if is_damaged(cache_file):
        log.warning("The cache file %s is damaged or incomplete. It is deleted and written again.", cache_file)
        delete_cached(cache_file)
    return cache_file.exists()


async def _run_rows(stage: Stage, rows: Sequence[Row], row_done: RowDone, starting: asyncio.Lock) -> list[Row]:
    async def run_row(row: Row) -> Row:
        added = await stage(row)
        row_done(stage.name, added)
        return added

    return await run_together((run_row(row) for row in rows), starting=starting)
