"""Writes the published tables from the finished shards, in one pass and with bounded memory.

``run.finish`` calls ``write_views`` at the end of a build. The hash of the prompt decides whether a query belongs to
``train`` or ``test``, so no prompt is in both.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from bestofn.builders.arrow_types import Features
from bestofn.builders.records import JsonObject, Row
from bestofn.builders.redaction.secrets import redacted
from bestofn.builders.tables import parquet_files, shards
from bestofn.builders.tables.columns import PublishedTable, TableSettings, features_of
from bestofn.builders.tables.parquet_files import Writer, table_files
from bestofn.builders.tables.query_row import EMPTY, QueryRow
from bestofn.builders.tables.reward_columns import with_reward_columns
from bestofn.builders.tables.views import VIEWS

BUFFERED_ROWS, BUFFERED_BYTES = 300, 12 << 20  # limits for all open files together: Python rows, bytes of row groups

Writers = Mapping[tuple[str, str], Writer]
"""(table, side) -> its open writer."""
Tables = Mapping[str, PublishedTable[Any]]
"""The tables to write, by name."""


def write_views(
    parts: Sequence[Path],
    out: Path,
    run: JsonObject,
    settings: TableSettings | None = None,
    names: Iterable[str] = tuple(VIEWS),
) -> dict[str, int]:
    """Write the published tables of the shards ``parts`` to the folder ``out``.

    Returns the number of rows by ``table`` or ``table/side``. ``run`` is the manifest; every file contains some facts
    of the manifest (see ``schema_metadata``). ``candidates/data.parquet`` holds all candidates. A training table has
    ``train.parquet``. It also has ``test.parquet`` if there are test rows. A side larger than
    ``parquet_files.FILE_BYTES`` is several files. The table ``reward_model`` has the column ``margin`` only if every
    pair has a margin, because ``RewardTrainer`` adds this column to its loss.
    """
    has_margins, score_parts = shards.every_pair_has_margin(parts), shards.score_parts(parts)
    metadata = schema_metadata({**run, **shards.totals(parts)})
    with ViewWriter(out, settings or TableSettings(), score_parts, has_margins=has_margins, names=names) as views:
        views.metadata = metadata
        views.add_parts(parts)
    return views.row_counts()


class ViewWriter:
    """A context manager that writes the published tables to the folder ``out``, row by row.

    ``score_parts`` are the names of the numeric parts of the scores, and ``has_margins`` says whether every pair has a
    margin. ``metadata`` must be set before the block ends. If the block raises an error, no file remains.
    """

    def __init__(
        self,
        out: Path,
        settings: TableSettings,
        score_parts: Sequence[str],
        *,
        has_margins: bool,
        names: Iterable[str] = tuple(VIEWS),
    ) -> None:
        self.metadata: Mapping[str, str] | None = None
        self._settings = settings
        self._read = 0  # bytes that were read since the writers were flushed
        names = tuple(names)
        self._tables: Tables = {name: VIEWS[name] for name in names}
        if "candidates" in self._tables:
            self._tables = {**self._tables, "candidates": with_reward_columns(score_parts)}
        left_out = {} if has_margins else {"reward_model": ("margin",)}
        _delete_temporary_files(out, names)
        self._writers: Writers = {
            (name, side): Writer(
                out / name / f"{side}.parquet", _features(self._tables[name], left_out), None, parquet_files.FILE_BYTES
            )
            for name in names
            for side in VIEWS[name].sides
        }
        self._files = contextlib.ExitStack()

    def __enter__(self) -> ViewWriter:
        with contextlib.ExitStack() as opened:
            for writer in self._writers.values():
                opened.enter_context(writer)
            self._files = opened.pop_all()
        return self

    def __exit__(self, *raised: Any) -> None:
        for writer in self._writers.values():
            writer.metadata = self.metadata
        self._files.__exit__(*raised)

    def add_parts(self, parts: Sequence[Path]) -> None:
        """Add the rows of the shards ``parts``."""
        for batch, size in shards.nested_batches(parts):
            self.add_rows(batch, size)

    def add_rows(self, rows: Iterable[Row], size: int) -> None:
        """Add nested rows, which have ``size`` bytes in Arrow's memory format."""
        for row in rows:
            query = QueryRow(row, self._settings.system, reasoning=self._settings.reasoning)
            _write_row(query, self._writers, self._tables, self._settings)
            _limit_buffers(self._writers)
        self._read += size
        if self._read >= shards.READ_BYTES:
            self._read = 0
            for writer in self._writers.values():
                writer.flush()

    def row_counts(self) -> dict[str, int]:
        """Delete empty test files and empty optional tables. Returns the number of rows of each remaining file.

        Call it after the ``with`` block.
        """
        return _delete_empty_files(self._writers)


def _features(table: PublishedTable[Any], left_out: Mapping[str, Sequence[str]]) -> Features:
    """Return the types of ``table`` without the columns that ``left_out`` lists for it."""
    columns = [column for column in table.columns if column.name not in left_out.get(table.name, ())]
    return features_of(columns)


def side_of(row: Row, test_share: float) -> str:
    """Return the side of a query, ``train`` or ``test``. It depends only on the hash of the training prompt."""
    return _side_of(QueryRow(row), test_share)


def schema_metadata(run: JsonObject) -> dict[str, str]:
    """Return the facts of the manifest ``run`` that are stored in the schema of every Parquet file."""
    config = cast("JsonObject", redacted(run.get("config") or EMPTY))
    provider: JsonObject = config.get("provider") or EMPTY
    sampling: JsonObject = config.get("sampling") or EMPTY
    dataset: JsonObject = config.get("dataset") or EMPTY
    persona: JsonObject = config.get("persona") or EMPTY
    not_sent: JsonObject = run.get("not_sent") or EMPTY
    facts: dict[str, object] = {
        "schema_version": run.get("schema_version"),
        "generated_at": run.get("updated_at"),
        "model": provider.get("model") or provider.get("path"),
        "num_candidates": config.get("n"),
        "temperature": None if "temperature" in not_sent else sampling.get("temperature"),
        "not_sent": not_sent or None,
        "max_tokens": sampling.get("max_tokens"),
        "seed": config.get("seed"),
        "splits": dataset.get("splits") or run.get("splits"),
        "total_queries": run.get("queries"),
        "total_records": run.get("candidates"),
        "avg_verification_rate": run.get("avg_verification_rate"),
        "persona": persona.get("name") or persona.get("path"),
        "persona_file": persona.get("path") or None,
        "config_file": config.get("config_file"),
        "notes": config.get("notes"),
        "versions": run.get("versions"),
        "config": config,
    }
    return {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        for key, value in facts.items()
        if value is not None
    }


def _write_row(query: QueryRow, writers: Writers, tables: Tables, settings: TableSettings) -> None:
    """Add the rows of one query to the ``data`` writers and to the writers of its side."""
    side = _side_of(query, settings.test_share)
    for (name, of_side), writer in writers.items():
        if of_side in ("data", side):
            for flat in tables[name].rows(query, settings):
                writer.add(flat)


def _side_of(query: QueryRow, test_share: float) -> str:
    prompt = json.dumps(query.stored_prompt, sort_keys=True, default=str)
    digest = hashlib.sha256(prompt.encode("utf-8", "replace")).digest()
    return "test" if int.from_bytes(digest[:8], "big") / 2**64 < test_share else "train"


def _limit_buffers(writers: Writers) -> None:
    """If all writers together exceed a limit, free the memory of one writer.

    Too many buffered rows: flush the writer with most rows. Too many buffered bytes: end the largest row group.
    """
    if sum(writer.buffered_rows for writer in writers.values()) >= BUFFERED_ROWS:
        max(writers.values(), key=lambda writer: writer.buffered_rows).flush()
    if sum(writer.buffered_bytes for writer in writers.values()) >= BUFFERED_BYTES:
        max(writers.values(), key=lambda writer: writer.buffered_bytes).end_group()


def _delete_temporary_files(out: Path, names: Iterable[str]) -> None:
    """Delete the temporary files that a killed run left."""
    for name in names:
        for file in (out / name).glob("*.tmp"):
            file.unlink()


def _delete_empty_files(writers: Writers) -> dict[str, int]:
    """Delete empty test files and empty optional tables. Returns the number of rows of each remaining file."""
    counts: dict[str, int] = {}
    for (name, side), writer in writers.items():
        if writer.count or not (VIEWS[name].optional or side == "test"):
            counts[name if side == "data" else f"{name}/{side}"] = writer.count
            continue
        writer.path.unlink()
        if VIEWS[name].optional and not table_files(writer.path.parent):
            with contextlib.suppress(OSError):
                writer.path.parent.rmdir()
    return counts
