"""Runs one stage over the rows of one shard with ``Dataset.map``. Called by ``builders.run.part_writer``.

The whole shard is one batch, so that no row waits for another. The result can be kept in a cache file.
"""

from __future__ import annotations

import functools
import json
import logging
from pathlib import Path

from datasets import Dataset, concatenate_datasets

from bestofn.builders.run import manifest
from bestofn.builders.stages.stage import RowDone, Stage
from bestofn.builders.tables.checksums import checksum, matches

log = logging.getLogger(__name__)


def apply_stage(
    dataset: Dataset, stage: Stage, *, fingerprint: str, cache_file: Path | None = None, row_done: RowDone | None = None
) -> Dataset:
    """Return ``dataset`` with the columns that ``stage`` adds.

    If ``cache_file`` is set, the added columns are stored in this file, and its checksum in a second file. The next
    call with the same file reads them from it if the checksum is right. ``Dataset.map`` does not compare functions, so
    the name of the file must contain the ``fingerprint`` of the rows and the settings.
    """
    is_cached = cache_file is not None and _is_intact(cache_file)
    added = dataset.with_format("arrow").map(
        functools.partial(stage.added_columns, row_done=row_done),
        batched=True,
        batch_size=None,
        features=stage.adds,
        remove_columns=dataset.column_names,
        new_fingerprint=fingerprint,
        cache_file_name=str(cache_file) if cache_file else None,
        load_from_cache_file=is_cached,
    )
    if cache_file is not None and not is_cached:
        manifest.write_text(_checksum_of(cache_file), json.dumps(checksum(cache_file)) + "\n")
    return concatenate_datasets([dataset, added.with_format(None)], axis=1)


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
