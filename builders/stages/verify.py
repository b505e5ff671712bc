"""The second stage of a build: verifies each candidate."""

from __future__ import annotations

import time
from dataclasses import replace

from datasets import Features

from bestofn.builders.concurrency.tasks import run_together
from bestofn.builders.errors import row_boundary
from bestofn.builders.protocols import Verifier
from bestofn.builders.records import Candidate, Query, Row, Verdict
from bestofn.builders.sampling.meter import Meter, costs_of, metered
from bestofn.builders.schema import candidates_of, features, query_from_row, verdict_to_row
from bestofn.builders.stages.stage import Stage
from bestofn.builders.telemetry.spans import span


class Verify(Stage):
    """Adds the column ``verdicts``, one verdict per candidate, in the order of ``candidates``.

    If the verifier sends requests to a judge with a known price, ``detail["cost_usd"]`` is their cost in dollars. If
    the verifier raises an exception, the outcome is ``error``, never ``fail``.
    """

    name = "verify"

    def __init__(self, verifier: Verifier) -> None:
        self.verifier = verifier

    @property
    def adds(self) -> Features:
        """The column that this stage adds, ``verdicts``, with its type."""
        return features()["verdicts"]

    async def compute(self, row: Row) -> Row:
        """Verify the candidates of one query and return the column ``verdicts``."""
        query = query_from_row(row)
        metered_verdicts = await run_together(self._verdict(query, candidate) for candidate in candidates_of(row))
        costs = costs_of([meter for _, meter in metered_verdicts])
        verdicts = [_with_cost(verdict, usd) for (verdict, _), usd in zip(metered_verdicts, costs, strict=True)]
        return {"verdicts": [verdict_to_row(verdict) for verdict in verdicts]}

    async def _verdict(self, query: Query, candidate: Candidate) -> tuple[Verdict, Meter]:
        started = time.perf_counter()
        with metered() as meter, span("verification", {"query_id": query.id, "split": query.split}) as verification:
            verdict = await verdict_of(self.verifier, query, candidate)
            verification.note({"outcome": verdict.outcome, "verifier": verdict.verifier})
        if verdict.seconds or candidate.error:
            return verdict, meter
        return replace(verdict, seconds=time.perf_counter() - started), meter


def _with_cost(verdict: Verdict, usd: float | None) -> Verdict:
    return verdict if usd is None else replace(verdict, detail={**verdict.detail, "cost_usd": usd})


async def verdict_of(verifier: Verifier, query: Query, candidate: Candidate) -> Verdict:
    """Return the verdict of ``verifier`` on ``candidate``.

    The outcome is ``error`` if the verifier raises an exception. It is also ``error`` if the candidate has an error,
    because there is no answer to verify. Raises only the errors that stop the run (see ``row_boundary``).
    """
    if candidate.error:
        return Verdict("error", 1.0, f"no answer was generated: {candidate.error}", Verify.name)
    with row_boundary() as failure:
        return await verifier.verify(query, candidate)
    return Verdict("error", 0.0, failure.message, verifier.name)
