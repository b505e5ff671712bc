"""Runs the stages over the rows of one shard and writes its Parquet part. Called by ``builders.run.pipeline``."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bestofn.builders.arrow_types import Table, features_from
from bestofn.builders.concurrency.event_loop import Loop
from bestofn.builders.protocols import Stage
from bestofn.builders.records import Row
from bestofn.builders.run.apply_stage import RowDone, apply_stage, delete_cached
from bestofn.builders.run.failures import failures
from bestofn.builders.run.run_folder import part_of, remove_marker
from bestofn.builders.schema import SCHEMA_VERSION, NestedRow, features
from bestofn.builders.tables import parquet_files
from bestofn.builders.tables.arrow_rows import from_table, join_columns, to_table

RowsDone = Callable[[int, Sequence[Row], int], None]
"""A callback that is called with the number of a shard, its nested rows and their size, when its part is written."""
Failures = Mapping[str, int]
"""Stage -> number of candidates that failed in it."""
PART_ROWS = 256  # rows that are added to a part at a time


@dataclass(frozen=True, slots=True)
class PartWriter:
    """Writes the parts of the run ``out``.

    ``row_done`` is called after each row of each stage (see ``RowDone``), and ``landed`` after each part (see
    ``RowsDone``).
    """

    out: Path
    stages: Sequence[Stage]
    loop: Loop
    row_done: RowDone
    landed: RowsDone = lambda number, rows, size: None

    def write(self, number: int, rows: Sequence[Row], fingerprints: Sequence[str]) -> Failures:
        """Run the stages over ``rows`` and write the Parquet part of shard ``number``, but not its marker.

        The results of stages that are in the cache are used. The cached results of the first stage with failures, and
        of all later stages, are deleted, so that the next run tries again.
        """
        files = self._cache_files(number, fingerprints)
        types = dict(features()["query"])
        table, read = self._queries(rows)
        for stage in self.stages:
            added = apply_stage(read, stage, self.loop, cache_file=files[stage.name], row_done=self.row_done)
            for row, columns in zip(read, from_table(added, features_from(stage.adds)), strict=True):
                row.update(columns)
            table, types = join_columns(table, added), types | dict(stage.adds)
        part = part_of(self.out, number)
        remove_marker(part)
        tables = (table.slice(first, PART_ROWS) for first in range(0, len(rows), PART_ROWS))
        parquet_files.write_tables(tables, part, features_from(types), {"schema_version": SCHEMA_VERSION})
        self.landed(number, read, table.nbytes)
        failed = failures(read, self.stages)
        for name in itertools.dropwhile(lambda name: name not in failed, files):
            delete_cached(files[name])
        return failed

    def run_first_stage(self, number: int, rows: Sequence[Row], fingerprints: Sequence[str]) -> None:
        """Run the first stage over ``rows`` and write its cache file. No part is written."""
        first = self.stages[0]
        file = self._cache_files(number, fingerprints)[first.name]
        apply_stage(self._queries(rows)[1], first, self.loop, cache_file=file, row_done=self.row_done)

    def _queries(self, rows: Sequence[Row]) -> tuple[Table, list[NestedRow]]:
        """Return ``rows`` as an Arrow table, and as the nested rows that are read back from this table."""
        types = features_from(features()["query"])
        table = to_table(rows, types)
        return table, list(map(NestedRow, from_table(table, types)))

    def _cache_files(self, number: int, fingerprints: Sequence[str]) -> Mapping[str, Path]:
        cache = self.out / "cache"
        cache.mkdir(parents=True, exist_ok=True)
        return {
            stage.name: cache / f"{number:05d}-{stage.name}-{name}.arrow"
            for stage, name in zip(self.stages, fingerprints, strict=True)
        }
