"""Runs the stages over the rows of one shard and writes its Parquet part. Called by ``builders.run.pipeline``."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from datasets import Dataset

from bestofn.builders.records import Row
from bestofn.builders.run.apply_stage import apply_stage, delete_cached
from bestofn.builders.run.failures import failures
from bestofn.builders.run.run_folder import part_of, remove_marker
from bestofn.builders.schema import SCHEMA_VERSION, features
from bestofn.builders.stages.stage import RowDone, Stage
from bestofn.builders.tables import parquet_files
from bestofn.builders.tables.arrow_rows import to_table

Failures = Mapping[str, int]
"""Stage -> number of candidates that failed in it."""
PART_ROWS = 256  # rows that are added to a part at a time


@dataclass(frozen=True, slots=True)
class PartWriter:
    """Writes the parts of the run ``out``. ``row_done`` is called after each row of each stage (see ``RowDone``)."""

    out: Path
    stages: Sequence[Stage]
    row_done: RowDone

    def write(
        self, number: int, rows: Sequence[Row], fingerprints: Sequence[str], sampled: Callable[[], None]
    ) -> Failures:
        """Run the stages over ``rows`` and write the Parquet part of shard ``number``, but not its marker.

        ``sampled`` is called after the first stage. The results of stages that are in the cache are used. The cached
        results of the first stage with failures, and of all later stages, are deleted, so that the next run tries
        again.
        """
        cache = self.out / "cache"
        cache.mkdir(parents=True, exist_ok=True)
        names = [stage.name for stage in self.stages]
        files = [cache / f"{number:05d}-{name}-{key}.arrow" for name, key in zip(names, fingerprints, strict=True)]
        shard = Dataset(to_table(rows, features()["query"]))
        for stage, key, file in zip(self.stages, fingerprints, files, strict=True):
            shard = apply_stage(shard, stage, fingerprint=key, cache_file=file, row_done=self.row_done)
            if stage is self.stages[0]:
                sampled()
        part = part_of(self.out, number)
        remove_marker(part)
        table = shard.data.table
        slices = (table.slice(first, PART_ROWS) for first in range(0, len(rows), PART_ROWS))
        parquet_files.write_tables(slices, part, shard.features, {"schema_version": SCHEMA_VERSION})
        failed = failures(table, self.stages)
        for _, file in itertools.dropwhile(lambda one: one[0] not in failed, zip(names, files, strict=True)):
            delete_cached(file)
        return failed
