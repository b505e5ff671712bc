"""Verify: one verdict for each candidate, beside ``candidates``."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bestofn.builders.errors import row_boundary
from bestofn.builders.protocols import Verifier
from bestofn.builders.records import Candidate, Query, Verdict
from bestofn.builders.schema import candidate_from_row, features, query_from_row, verdict_to_row


class Verify:
    """Every candidate gets a verdict; what breaks on our side becomes ``error``, never ``fail``.

    A candidate that is itself an error (nothing was generated) is ``error`` too: it says nothing about the model.
    """

    name = "verify"

    def __init__(self, verifier: Verifier) -> None:
        self.verifier = verifier
        self.counts: Counter[str] = Counter()

    @property
    def adds(self) -> Mapping[str, Any]:
        return features()["verdicts"]

    async def __call__(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        query = query_from_row(row)
        candidates = [candidate_from_row(candidate) for candidate in row["candidates"]]
        verdicts = await asyncio.gather(*(self._verdict(query, candidate) for candidate in candidates))
        self.counts.update(verdict.outcome for verdict in verdicts)
        return {"verdicts": [verdict_to_row(verdict) for verdict in verdicts]}

    async def _verdict(self, query: Query, candidate: Candidate) -> Verdict:
        if candidate.error:
            return Verdict("error", 1.0, f"no answer was generated: {candidate.error}", self.name)
        started = time.perf_counter()
        verdict = await verdict_of(self.verifier, query, candidate)
        return verdict if verdict.seconds else replace(verdict, seconds=time.perf_counter() - started)


async def verdict_of(verifier: Verifier, query: Query, candidate: Candidate) -> Verdict:
    """The verdict of ``verifier``; an exception is the outcome ``error``, which is neither a pass nor a fail.

    Raises what every row would meet (see ``row_boundary``).
    """
    with row_boundary() as failure:
        return await verifier.verify(query, candidate)
    return Verdict("error", 0.0, failure.message, verifier.name)
