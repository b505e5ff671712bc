"""Queries worth paying for: none that is held out for testing, none twice."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bestofn.builders.errors import SourceError
from bestofn.builders.protocols import Source
from bestofn.builders.records import Query
from bestofn.builders.sources.held_out import HeldOut, Likeness
from bestofn.builders.sources.mapped import Mapped
from bestofn.builders.sources.near_duplicates import SeenPrompts

log = logging.getLogger(__name__)

KEPT_EXAMPLES = 200


class Screened:
    """``source`` without prompts that overlap with ``held_out`` and without repetitions.

    ``held_out`` names datasets: files and Hub ids (their usual columns), or sources of their own settings
    (``_target_: bestofn.builders.sources.mapped.Mapped``). What overlap is say ``builders.sources.held_out``
    (``run`` words in a row, ``common``) and ``builders.sources.near_duplicates`` (``near``). ``repeats=False`` lets
    repetitions pass.
    ``max_queries`` counts what is left. What was dropped is counted by reason in ``skipped``; the first 200 are in
    ``dropped``, each with the prompt it is like. Memory: the held-out index; repetitions are remembered on disk.
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
        max_queries: int | None = None,
    ) -> None:
        if run < 1:
            raise SourceError(f"dataset.run is {run}; expected at least 1 word")
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
        held_out = HeldOut(map(_named, self.held_out), run=self.run, common=self.common)
        left_out = {_name(one): dict(lost) for one in self.held_out if (lost := getattr(one, "skipped", None))}
        if held_out.empty:
            raise SourceError(
                f"dataset.held_out: {', '.join(held_out.empty)} gave no prompt to keep apart; rows left out there: "
                f"{left_out or 'none'}. Check its path and columns."
            )
        if left_out:
            log.warning("dataset.held_out: rows without a prompt, which nothing is kept apart from: %s", left_out)
        try:
            if self.seen is None:
                yield from self._passing(held_out, None)
            else:
                with self.seen as seen:
                    yield from self._passing(held_out, seen)
        finally:
            self.skipped.update(getattr(self.source, "skipped", {}))

    def _passing(self, held_out: HeldOut, seen: SeenPrompts | None) -> Iterator[Query]:
        taken = 0
        for query in self.source:
            if self.max_queries is not None and taken >= self.max_queries:
                return
            found = held_out.likeness(query) or (seen.likeness(query) if seen is not None else None)
            if found is not None:
                self._drop(query, found)
                continue
            taken += 1
            yield query

    def _drop(self, query: Query, found: Likeness) -> None:
        self.skipped[found.reason] += 1
        if len(self.dropped) < KEPT_EXAMPLES:
            self.dropped.append({"query_id": query.id, "reason": found.reason, "like": found.like})


def _named(source: Any) -> tuple[str, Iterable[Query]]:
    """The name of a held-out set, and all its prompts, whatever ids they have."""
    return _name(source), source.every() if isinstance(source, Mapped) else source


def _name(source: Any) -> str:
    return Path(str(getattr(source, "name", "") or type(source).__name__)).name
