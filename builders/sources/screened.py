"""Wraps a source and drops held-out and repeated prompts. ``conf/dataset/screened.yaml`` uses it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bestofn.builders.errors import SourceError
from bestofn.builders.protocols import Source
from bestofn.builders.records import PositiveCount, Query
from bestofn.builders.sources.held_out import HeldOut, Overlap
from bestofn.builders.sources.mapped import Mapped
from bestofn.builders.sources.near_duplicates import SeenPrompts
from bestofn.builders.sources.skipped import skipped_by

log = logging.getLogger(__name__)

MAX_EXAMPLES = 200  # limit on the entries of ``dropped``


class Screened:
    """The queries of ``source`` that neither overlap with ``held_out`` nor repeat an earlier query.

    ``held_out`` lists datasets: files and Hub ids with usual column names, or sources with their own settings
    (``_target_: bestofn.builders.sources.mapped.Mapped``). ``run`` and ``common``: see ``HeldOut``; ``near``: see
    ``SeenPrompts``. With ``repeats=False``, repeated queries are not dropped. ``max_queries`` limits the queries that
    this source yields.

    ``skipped`` counts the dropped queries by reason. ``dropped`` has the first 200 dropped queries, each with the id of
    the overlapping prompt. Only the held-out index is in memory; earlier prompts are in a temporary file.
    """

    def __init__(
        self,
        source: Source,
        *,
        held_out: Sequence[str | Source] = (),
        run: int = 13,
        common: int = 10,
        repeats: bool = True,
        near: float | None = 0.8,
        max_queries: PositiveCount | None = None,
    ) -> None:
        if run < 1:
            raise SourceError(
                f"dataset.run is {run}; expected at least 1: the number of consecutive words that count as overlap"
            )
        self.source = source
        self.name = source.name
        self.held_out = [Mapped(one) if isinstance(one, str) else one for one in held_out]
        self.run, self.common, self.max_queries = run, common, max_queries
        self.seen = SeenPrompts(near) if repeats else None
        self.skipped: Counter[str] = Counter()
        self.dropped: list[dict[str, str]] = []

    def __iter__(self) -> Iterator[Query]:
        self.skipped.clear()
        self.dropped.clear()
        held_out = self._index()
        try:
            if self.seen is None:
                yield from self._passing(held_out, None)
            else:
                with self.seen as seen:
                    yield from self._passing(held_out, seen)
        finally:
            self.skipped.update(skipped_by(self.source))

    def _index(self) -> HeldOut:
        """Build the index of held-out prompts. Raises ``SourceError`` if a held-out set has no readable prompt."""
        index = HeldOut(map(_named_prompts, self.held_out), run=self.run, common=self.common)
        skipped = {_name(one): dict(skipped) for one in self.held_out if (skipped := skipped_by(one))}
        if index.empty:
            raise SourceError(
                f"dataset.held_out: no prompt could be read from {', '.join(index.empty)}. Skipped rows: "
                f"{skipped or 'none'}. Check the path and the columns."
            )
        if skipped:
            log.warning("dataset.held_out: rows without a prompt are not used for screening. Skipped rows: %s", skipped)
        return index

    def _passing(self, held_out: HeldOut, seen: SeenPrompts | None) -> Iterator[Query]:
        taken = 0
        for query in self.source:
            if self.max_queries is not None and taken >= self.max_queries:
                return
            overlap = held_out.overlap(query) or (seen.overlap(query) if seen is not None else None)
            if overlap is not None:
                self._drop(query, overlap)
                continue
            taken += 1
            yield query

    def _drop(self, query: Query, overlap: Overlap) -> None:
        self.skipped[overlap.reason] += 1
        if len(self.dropped) < MAX_EXAMPLES:
            self.dropped.append({"query_id": query.id, "reason": overlap.reason, "like": overlap.other})


def _named_prompts(source: Source) -> tuple[str, Iterable[Query]]:
    """Return the name of a held-out set, and all its queries, including queries with the same id."""
    return _name(source), source.with_duplicates() if isinstance(source, Mapped) else source


def _name(source: Source) -> str:
    return Path(source.name).name
