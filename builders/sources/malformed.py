"""Well-posed problems beside the same ones spoiled: does a model notice, or does it make an answer up?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bestofn.builders.errors import SourceError
from bestofn.builders.protocols import Source
from bestofn.builders.records import Query, Reference
from bestofn.builders.sources.corruptions import CORRUPTIONS


class Malformed:
    """Each problem of ``source`` as it is, then spoiled in each of ``kinds`` that applies to it.

    Takes single-turn queries with a known answer and without tools; the others are counted in ``skipped``. A spoiled
    query is named ``<id>#<kind>``, its split is the kind, and it has no reference answer. ``metadata`` tells ``posed``
    (``well`` or the kind), ``flaw``, ``symbol`` and ``origin``, the id of the problem it was made of.
    ``well_posed=False`` leaves the controls out, and with them the rate of false refusals. Nothing proves that what
    was taken away was needed: a problem with idle facts may stay solvable.
    """

    def __init__(self, source: Source, *, kinds: Sequence[str] = tuple(CORRUPTIONS), well_posed: bool = True) -> None:
        unknown = [kind for kind in kinds if kind not in CORRUPTIONS]
        if unknown or not kinds:
            raise SourceError(
                f"dataset.kinds names {', '.join(unknown) or 'none'}; expected some of {', '.join(CORRUPTIONS)}"
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
                yield from self._spoiled(query, query.reference.answer)
        finally:  # also when nobody asks for more
            self.skipped.update(getattr(self.source, "skipped", {}))

    def _spoiled(self, query: Query, answer: str) -> Iterator[Query]:
        for kind in self.kinds:
            made = CORRUPTIONS[kind](query.text, answer)
            if made is None:
                self.skipped[f"{kind} does not apply"] += 1
                continue
            yield replace(
                query,
                id=f"{query.id}#{kind}",
                split=kind,
                messages=({"role": "user", "content": made.text},),
                reference=Reference(),
                metadata={
                    **query.metadata,
                    "posed": kind,
                    "origin": query.id,
                    "flaw": made.flaw,
                    "symbol": made.symbol,
                },
            )
