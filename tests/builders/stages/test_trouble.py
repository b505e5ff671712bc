"""The failure of one row is stored as data, and an error that concerns every row stops the run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from bestofn.builders.errors import (
    AuthenticationError,
    BudgetError,
    JournalError,
    MachineError,
    OutageError,
    RequestError,
    SandboxError,
    ServiceError,
)
from bestofn.builders.stages.score import ScoreCandidates
from bestofn.builders.stages.verdicts import verdict_of
from bestofn.builders.stages.verify import Verify
from tests.runs import rows

STOPS = [
    AuthenticationError("no key", status=401),
    BudgetError("spent"),
    JournalError("the disk is full"),
    MachineError("the gateway is gone"),
    OutageError("the judge is away"),
    SandboxError("the engine is gone"),
]
DATA = [
    ServiceError("overloaded", status=529),
    RequestError("too long", status=400),
    ValueError("a bug"),
    KeyError("x"),
]


class Breaks:
    """A verifier and reward that always raises ``error``."""

    name = "breaks"

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def verify(self, query: Any, candidate: Any) -> Any:
        raise self.error

    async def score(self, query: Any, candidates: Any, verdicts: Any) -> Any:
        raise self.error


def work(breaks: Breaks) -> dict[str, Callable[[], Any]]:
    from bestofn.builders.schema import candidate_from_row, query_from_row

    (row,) = rows(1, 2)
    query, candidate = query_from_row(row), candidate_from_row(row["candidates"][0])
    return {
        "verify": lambda: Verify(breaks).compute(row),  # type: ignore[arg-type]
        "score": lambda: ScoreCandidates(breaks).compute(row),  # type: ignore[arg-type]
        "generate": lambda: verdict_of(breaks, query, candidate),  # type: ignore[arg-type]
    }


@pytest.mark.parametrize("stage", ["verify", "score", "generate"])
@pytest.mark.parametrize("error", STOPS, ids=lambda error: type(error).__name__)
def test_an_error_that_every_row_would_meet_stops_the_run(stage: str, error: Exception) -> None:
    with pytest.raises(type(error)):
        asyncio.run(work(Breaks(error))[stage]())


@pytest.mark.parametrize("stage", ["verify", "score", "generate"])
@pytest.mark.parametrize("error", DATA, ids=lambda error: type(error).__name__)
def test_the_failure_of_one_row_is_data(stage: str, error: Exception) -> None:
    result = asyncio.run(work(Breaks(error))[stage]())
    if stage == "verify":
        assert {verdict["outcome"] for verdict in result["verdicts"]} == {"error"}
    elif stage == "score":
        assert [score["value"] for score in result["scores"]] == [None, None]
    else:
        assert result.outcome == "error"
