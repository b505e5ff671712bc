"""The second stage of a build: verifies each candidate.

Batches of answers whose verifier needs no model and no sandbox (``protocols.VerifiesInWorkers``) are verified in worker
processes, so that they share no processor with the event loop. All other answers are verified in the event loop.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Sequence
from dataclasses import replace

from datasets import Features

from bestofn.builders.concurrency.tasks import run_together
from bestofn.builders.errors import raise_if_it_stops_the_run
from bestofn.builders.protocols import Verifier, Workers, in_worker
from bestofn.builders.records import Candidate, Query, Row, Verdict
from bestofn.builders.sampling.cost import Meter, costs_of, metered
from bestofn.builders.schema import candidates_of, features, query_from_row, verdict_to_row
from bestofn.builders.stages.stage import RowDone, Stage
from bestofn.builders.stages.verdicts import verdict_of, verify_rows
from bestofn.builders.telemetry.spans import span

BATCH_ROWS = 32  # queries per call of a worker
LEAST_ROWS = 64  # a worker takes longer to start than it takes to verify the answers to fewer queries
BATCH_S = 120.0  # time limit of a batch; then each of its answers is verified alone
ANSWER_S = 60.0  # time limit of one answer alone


class Verify(Stage):
    """Adds the column ``verdicts``, one verdict per candidate, in the order of ``candidates``.

    If the verifier sends requests to a judge with a known price, ``detail["cost_usd"]`` is their cost in dollars. If
    the verifier raises an exception, the outcome is ``error``, never ``fail``. Without ``workers``, all answers are
    verified in this process.
    """

    name = "verify"
    operational = ("workers",)

    def __init__(self, verifier: Verifier, workers: Workers | None = None) -> None:
        self.verifier, self.workers = verifier, workers

    @property
    def adds(self) -> Features:
        """The column that this stage adds, ``verdicts``, with its type."""
        return features()["verdicts"]

    async def compute(self, row: Row) -> Row:
        """Verify the candidates of one query in this process and return the column ``verdicts``."""
        query = query_from_row(row)
        metered_verdicts = await run_together(self._verdict(query, candidate) for candidate in candidates_of(row))
        costs = costs_of([meter for _, meter in metered_verdicts])
        verdicts = [_with_cost(verdict, usd) for (verdict, _), usd in zip(metered_verdicts, costs, strict=True)]
        return {"verdicts": [verdict_to_row(verdict) for verdict in verdicts]}

    async def compute_rows(
        self, rows: Sequence[Row], row_done: RowDone | None = None, starting: asyncio.Lock | None = None
    ) -> list[Row]:
        """Verify the candidates of ``rows``. See ``Stage.compute_rows``."""
        given: list[tuple[int, Verifier]] = []
        if self.workers is not None and len(rows) >= LEAST_ROWS:
            verifiers = [in_worker(self.verifier, query_from_row(row)) for row in rows]
            given = [(number, one) for number, one in enumerate(verifiers) if one is not None]
        batches = [given[first : first + BATCH_ROWS] for first in range(0, len(given), BATCH_ROWS)]
        numbers = {number for number, _ in given}
        *verified, computed = await run_together(
            [
                *(self._by_worker([(one, rows[number]) for number, one in batch], row_done) for batch in batches),
                super().compute_rows([row for n, row in enumerate(rows) if n not in numbers], row_done, starting),
            ]
        )
        by_workers, here = itertools.chain.from_iterable(verified), iter(computed)
        return [next(by_workers) if number in numbers else next(here) for number in range(len(rows))]

    async def _by_worker(self, work: Sequence[tuple[Verifier, Row]], row_done: RowDone | None) -> list[Row]:
        """Verify the rows of ``work`` in a worker, each with its verifier."""
        assert self.workers is not None
        workers = self.workers
        try:
            verified = await workers.call(verify_rows, work, timeout_s=BATCH_S)
        except Exception as error:  # any failure of the worker: each answer is verified alone
            raise_if_it_stops_the_run(error)
            verified = [
                [await self._alone(workers, verifier, row, place) for place in range(len(row["candidates"]))]
                for verifier, row in work
            ]
        done: list[Row] = []
        for (_, row), verdicts in zip(work, verified, strict=True):
            left = [candidate for candidate, one in zip(row["candidates"], verdicts, strict=True) if one is None]
            here = iter((await self.compute({**row, "candidates": left}))["verdicts"] if left else ())
            done.append({"verdicts": [next(here) if one is None else one for one in verdicts]})
            if row_done is not None:
                row_done(self.name, done[-1])
        return done

    async def _alone(self, workers: Workers, verifier: Verifier, row: Row, place: int) -> Row | None:
        """Verify the candidate at ``place`` alone in a worker. If the worker fails, the outcome is ``error``."""
        one = {**row, "candidates": [row["candidates"][place]]}
        try:
            return (await workers.call(verify_rows, [(verifier, one)], timeout_s=ANSWER_S))[0][0]
        except Exception as error:  # any failure of the worker becomes the outcome ``error``
            raise_if_it_stops_the_run(error)
            problem = f"the verification failed ({type(error).__name__}: {error})"
            return verdict_to_row(Verdict("error", 0.0, problem, verifier.name))

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
