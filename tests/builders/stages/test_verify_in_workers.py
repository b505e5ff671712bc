"""Verification in worker processes gives the verdicts of this process, and survives verifiers that break a worker."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from bestofn.builders.records import Candidate, Query, Reference, Verdict
from bestofn.builders.schema import candidate_to_row, query_to_row
from bestofn.builders.stages import verify
from bestofn.builders.stages.verify import Verify
from bestofn.sandbox.workers import ProcessPool
from bestofn.verifiers.by_split import BySplit
from bestofn.verifiers.math import MathVerifier
from bestofn.verifiers.refusal.classifier import RefusalClassifier, WithRefusal

ANSWERS = (
    r"\boxed{4}",
    "The answer is 5.",
    "I cannot help with that.",
    r"$\int_0^2 2x\,dx$",  # SymPy decides
    "",
)


def rows(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        prompt = ({"role": "user", "content": "What is 2 + 2?"},)
        query = Query(
            f"q{number}", "math", prompt, reference=Reference(answer=r"\int_0^2 2x\,dx" if number % 2 else "4")
        )
        answers = [Candidate(i, ({"role": "assistant", "content": text},)) for i, text in enumerate(ANSWERS)]
        answers.append(replace(Candidate(len(ANSWERS)), error="ServiceError: overloaded"))
        yield {**query_to_row(query), "candidates": [candidate_to_row(answer) for answer in answers]}


def without_times(verified: list[Any]) -> list[Any]:
    return [[{**verdict, "seconds": 0.0} for verdict in row["verdicts"]] for row in verified]


def verified(make_verifier: Any, count: int, *, in_workers: bool) -> tuple[list[Any], list[str]]:
    done: list[str] = []

    async def run() -> list[Any]:
        async with ProcessPool(2) as workers:
            stage = Verify(make_verifier(workers), workers if in_workers else None)
            return await stage.compute_rows(list(rows(count)), lambda name, added: done.append(name))

    return asyncio.run(run()), done


class SomeHere(WithRefusal):
    """A verifier that decides about every third query in this process only."""

    def in_worker(self, query: Query) -> Any:
        return super().in_worker(query) if int(query.id[1:]) % 3 else None


def some_here(workers: ProcessPool) -> SomeHere:
    return SomeHere(BySplit({"math": MathVerifier(workers)}), RefusalClassifier())


def test_workers_give_the_same_verdicts_in_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "LEAST_ROWS", 1)
    monkeypatch.setattr(verify, "BATCH_ROWS", 3)
    here, _ = verified(some_here, 7, in_workers=False)
    there, done = verified(some_here, 7, in_workers=True)
    for one, other in zip(without_times(there), without_times(here), strict=True):
        assert one == other
    assert done == ["verify"] * 7
    outcomes = {verdict["outcome"] for row in there for verdict in row["verdicts"]}
    assert outcomes == {"pass", "fail", "abstain", "error"}


class EndsItsProcess:
    """A verifier that kills or stops the worker on some answers."""

    name = "ends"

    def __init__(self, parent: int) -> None:
        self.parent = parent

    def in_worker(self, query: Query) -> EndsItsProcess:
        return self

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        assert os.getpid() != self.parent
        if candidate.index == 1:
            os.kill(os.getpid(), 9)
        if candidate.index == 2:
            time.sleep(3600)  # noqa: ASYNC251
        return Verdict("pass", 1.0, "", self.name)


def test_an_answer_that_ends_its_worker_is_an_error_and_the_others_are_verified(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(verify, "LEAST_ROWS", 1)
    monkeypatch.setattr(verify, "ANSWER_S", 5.0)
    found, _ = verified(lambda workers: EndsItsProcess(os.getpid()), 1, in_workers=True)
    outcomes = [verdict["outcome"] for verdict in found[0]["verdicts"]]
    assert outcomes == ["pass", "error", "error", "pass", "pass", "error"]
    assert all(verdict["confidence"] == 0.0 for verdict in found[0]["verdicts"][1:3])


class Unpicklable(EndsItsProcess):
    """A verifier that cannot be sent to a worker."""

    def __init__(self) -> None:
        self.held = threading.Lock()

    def in_worker(self, query: Query) -> Unpicklable:
        return self


def test_a_verifier_that_cannot_be_sent_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "LEAST_ROWS", 1)
    found, _ = verified(lambda workers: Unpicklable(), 1, in_workers=True)
    assert {verdict["outcome"] for verdict in found[0]["verdicts"]} == {"error"}
    assert "pickle" in found[0]["verdicts"][0]["explanation"]


def test_a_worker_does_not_import_the_library_datasets() -> None:
    """It takes half a second in each worker, and a worker has no table."""
    code = "import sys, bestofn.builders.stages.verdicts, bestofn.verifiers.math; assert 'datasets' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
