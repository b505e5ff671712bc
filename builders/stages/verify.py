"""Verify: one verdict for each candidate, beside ``candidates``."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from builders.errors import STOPS_THE_RUN
from builders.protocols import Verifier
from builders.records import Candidate, Query, Verdict
from builders.schema import candidate_from_row, features, query_from_row, verdict_to_row


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
        try:
            verdict = await self.verifier.verify(query, candidate)
        except STOPS_THE_RUN:
            raise
        except Exception as error:  # one of the three places where exceptions become data
            verdict = Verdict("error", 0.0, f"{type(error).__name__}: {error}", self.verifier.name)
        return verdict if verdict.seconds else replace(verdict, seconds=time.perf_counter() - started)
