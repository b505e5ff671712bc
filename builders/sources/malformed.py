"""Pairs solvable problems with corrupted versions, to measure whether a model notices a flaw or invents an answer.

``conf/dataset/malformed.yaml`` uses it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bestofn.builders.errors import SourceError
from bestofn.builders.protocols import Source
from bestofn.builders.records import Query, Reference
from bestofn.builders.sources.corruptions import CORRUPTIONS
from bestofn.builders.sources.skipped import skipped_by


class Malformed:
    """The problems of ``source``, each followed by its corrupted versions: one for each of ``kinds`` that applies.

    Only single-turn queries that have a reference answer and no tools are used; ``skipped`` counts the others. A
    corrupted query has the id ``<id>#<kind>``, the kind as its split, and no reference answer.

    In ``metadata``, ``posed`` is ``well`` or the kind, and ``flaw`` describes the error. ``symbol`` is the undefined
    letter, and ``origin`` is the id of the original problem.

    ``well_posed=False`` leaves out the original problems; then the rate of false refusals cannot be measured. A
    corrupted problem may still be solvable, for example if the removed fact was irrelevant.
    """

    def __init__(self, source: Source, *, kinds: Sequence[str] = tuple(CORRUPTIONS), well_posed: bool = True) -> None:
        unknown = [kind for kind in kinds if kind not in CORRUPTIONS]
        if unknown or not kinds:
            raise SourceError(
                f"dataset.kinds contains {', '.join(unknown) or 'nothing'}; "
                f"expected one or more of {', '.join(CORRUPTIONS)}"
            )
        self.source, self.kinds, self.well_posed = source, tuple(kinds), well_posed
        self.name = f"{source.name}-malformed"
        self.skipped: Counter[str] = Counter()

    def __iter__(self) -> Iterator[Query]:
        self.skipped.clear()
        try:
            for query in self.source:
                if query.tools or len(query.messages) != 1 or query.reference.answer is None:
                    self.skipped["not a single question with a known answer"] += 1
                    continue
                if self.well_posed:
                    yield replace(query, metadata={**query.metadata, "posed": "well", "origin": query.id})
                yield from self._corrupted(query, query.reference.answer)
        finally:  # also if the caller stops early
            self.skipped.update(skipped_by(self.source))

    def _corrupted(self, query: Query, answer: str) -> Iterator[Query]:
        for kind in self.kinds:
            corrupted = CORRUPTIONS[kind](query.text, answer)
            if corrupted is None:
                self.skipped[f"{kind} does not apply"] += 1
                continue
            facts = {"posed": kind, "origin": query.id, "flaw": corrupted.flaw, "symbol": corrupted.symbol}
            yield replace(
                query,
                id=f"{query.id}#{kind}",
                split=kind,
                messages=({"role": "user", "content": corrupted.text},),
                reference=Reference(),
                metadata={**query.metadata, **facts},
            )
