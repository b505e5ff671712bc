"""Writes the published tables while the shards of a run are completed, so that little is left to do at the end.

The rows are written in the order of the shards. Used in the second process of a build.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bestofn.builders.records import JsonObject, Row
from bestofn.builders.run.run_folder import part_of
from bestofn.builders.tables import shards
from bestofn.builders.tables.columns import TableSettings
from bestofn.builders.tables.writer import ViewWriter, schema_metadata

if TYPE_CHECKING:
    from bestofn.builders.analysis.run_figures import RunFigures


class Landed(NamedTuple):
    """The number of rows by published table, and the figures of the run.

    ``figures`` is None if the figures can only be computed from the complete tables.
    """

    rows: Mapping[str, int]
    figures: RunFigures | None


class LandingViews:
    """The published tables of the run ``out``, which grow while shards are completed.

    The columns are fixed when the first shard is added: ``margin``, and one column per part of a score. They may not
    fit a later shard, which has another score part or a pair without a margin. ``finish`` then returns None, and the
    caller must write all tables again.
    """

    def __init__(self, out: Path, settings: TableSettings) -> None:
        self._out = out
        self._settings = settings
        self._written = 0  # the shards with lower numbers are in the tables
        self._waiting: dict[int, tuple[Sequence[Row], int]] = {}  # number -> rows of a later shard, and their size
        self._views: ViewWriter | None = None
        self._score_parts: Sequence[str] = ()
        self._fits = True
        from bestofn.builders.analysis.growing_figures import GrowingFigures  # the first process does not need it

        self._figures = GrowingFigures()

    def add(self, number: int, rows: Sequence[Row], size: int, complete: Collection[int]) -> None:
        """Add the rows of shard ``number``, which have ``size`` bytes, as soon as all earlier shards are added.

        ``complete`` are the numbers of the shards whose parts are complete. Rows of later shards wait in memory, up to
        ``shards.READ_BYTES`` in total. The other later shards are read again from their parts.
        """
        held = sum(waiting for _, waiting in self._waiting.values())
        if self._fits and (number == self._written or held + size <= shards.READ_BYTES):
            self._waiting[number] = rows, size
        while self._fits and (self._written in self._waiting or self._written in complete):
            self._add_next(part_of(self._out, self._written))

    def finish(self, parts: Sequence[Path], described: JsonObject) -> Landed | None:
        """Add the shards of ``parts`` that are not added yet, and publish the tables.

        ``described`` is the manifest. Returns None if the tables must be written again.
        """
        while self._fits and self._written < len(parts):
            self._add_next(parts[self._written])
        if not self._fits or self._views is None:
            self.discard()
            return None
        metadata = schema_metadata({**described, **shards.totals(parts)})
        views, self._views = self._views, None
        views.metadata = metadata
        views.__exit__(None, None, None)
        rows = views.row_counts()
        return Landed(rows, self._figures.finish(self._out, metadata, rows))

    def discard(self) -> None:
        """Delete the unfinished files of the tables, which are not published."""
        self._waiting.clear()
        if self._views is not None:
            self._views.__exit__(InterruptedError, InterruptedError(), None)
            self._views = None

    def _add_next(self, part: Path) -> None:
        """Add the rows of the next shard, whose file is ``part``."""
        waiting = self._waiting.pop(self._written, None)
        for batch, size in [waiting] if waiting else shards.nested_batches([part]):
            if self._fits:
                self._add_rows(batch, size)
        self._written += 1

    def _add_rows(self, rows: Sequence[Row], size: int) -> None:
        score_parts = shards.score_parts_of(rows)
        if self._views is None:
            self._score_parts = score_parts
            added = self._figures.add
            self._views = ViewWriter(self._out, self._settings, score_parts, has_margins=True, written=added)
            self._views.__enter__()
        self._fits = set(score_parts) <= set(self._score_parts) and shards.have_margins(rows)
        if self._fits:
            self._views.add_rows(rows, size)
