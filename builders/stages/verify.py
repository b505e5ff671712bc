"""The second stage of a build: one verdict per candidate."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from bestofn.builders.concurrency.tasks import run_together
from bestofn.builders.errors import row_boundary
from bestofn.builders.protocols import Verifier
from bestofn.builders.records import Candidate, Query, Row, Verdict
from bestofn.builders.schema import candidate_from_row, features, query_from_row, verdict_to_row


class Verify:
    """Adds ``verdicts``, aligned with ``candidates`` by position. An internal failure is ``error``, never ``fail``."""

    name = "verify"

    def __init__(self, verifier: Verifier) -> None:
        self.verifier = verifier

    @property
    def adds(self) -> Mapping[str, object]:
        """The column ``verdicts``."""
        return features()["verdicts"]

    async def __call__(self, row: Row) -> Row:
        """The verdicts on the candidates of one query."""
        query = query_from_row(row)
        candidates = [candidate_from_row(candidate) for candidate in row["candidates"]]
        verdicts = await run_together(self._verdict(query, candidate) for candidate in candidates)
        return {"verdicts": [verdict_to_row(verdict) for verdict in verdicts]}

    async def _verdict(self, query: Query, candidate: Candidate) -> Verdict:
        started = time.perf_counter()
        verdict = await verdict_of(self.verifier, query, candidate)
        if verdict.seconds or candidate.error:
            return verdict
        return replace(verdict, seconds=time.perf_counter() - started)


async def verdict_of(verifier: Verifier, query: Query, candidate: Candidate) -> Verdict:
    """The verdict of ``verifier`` on ``candidate``; an exception becomes the outcome ``error``.

    A candidate that is itself an error has the outcome ``error`` too, because nothing can be said about the model.
    Raises what stops the run (see ``row_boundary``).
    """
    if candidate.error:
        return Verdict("error", 1.0, f"no answer was generated: {candidate.error}", Verify.name)
    with row_boundary() as failure:
        return await verifier.verify(query, candidate)
    return Verdict("error", 0.0, failure.message, verifier.name)
