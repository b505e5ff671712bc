"""The cost of judges, rewards and simulated tools is stored in the row of the candidate or query that caused it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from bestofn.builders.formats.tool_calls import call
from bestofn.builders.records import Candidate, Completion, Query, Request, Score, ToolResult, Verdict
from bestofn.builders.sampling.cost import Meter, costs_of, metered, record_costs
from bestofn.builders.schema import candidate_to_row, query_to_row, verdict_to_row
from bestofn.builders.stages.rollout import rollout
from bestofn.builders.stages.score import ScoreCandidates
from bestofn.builders.stages.verify import Verify

QUERY = Query("q", "math", ({"role": "user", "content": "1 + 1?"},))
TEXT = {"role": "assistant", "content": "2"}


def paid(key: bytes, usd: float | None) -> Completion:
    """Record the cost of a new sample, as a sampler does, and return the completion."""
    completion = Completion(TEXT, "m", cost_usd=usd)
    record_costs(key, 0, {0: completion})
    return completion


class JudgeOfText:
    """A judge that sends one request per distinct answer, because equal requests are cache hits."""

    name = "judge"

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        await asyncio.sleep(0)
        paid(candidate.text.encode(), 0.25)
        return Verdict("pass", 1.0, "", self.name)


class RewardByModel:
    name = "reward"

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        paid(b"pairwise", 0.5)
        paid(b"of unknown price", None)
        return [Score(1.0) for _ in candidates]


def row_of(*texts: str) -> dict[str, Any]:
    candidates = [Candidate(i, ({"role": "assistant", "content": text},)) for i, text in enumerate(texts)]
    verdicts = [Verdict("pass", 1.0, "", "v") for _ in texts]
    return {
        **query_to_row(QUERY),
        "candidates": [candidate_to_row(one) for one in candidates],
        "verdicts": [verdict_to_row(one) for one in verdicts],
    }


def test_a_judge_is_paid_once_for_equal_answers() -> None:
    added = asyncio.run(Verify(JudgeOfText()).compute(row_of("2", "3", "2")))
    assert [verdict["detail"].get("cost_usd") for verdict in added["verdicts"]] == [0.25, 0.25, 0.0]


def test_the_cost_of_a_reward_is_divided_among_the_candidates() -> None:
    added = asyncio.run(ScoreCandidates(RewardByModel()).compute(row_of("2", "3")))
    assert [score["parts"] for score in added["scores"]] == [{"cost_usd": 0.25}] * 2


def test_the_cost_of_a_candidate_includes_its_simulated_tools() -> None:
    class World:
        def fresh(self, seed: int, declared: Any) -> World:
            return self

        async def call(self, name: str, arguments: Any, seed: int) -> ToolResult:
            paid(b"tool", 0.5)
            return ToolResult("{}", source="llm")

        def changes(self) -> None:
            return None

    class Sampler:
        async def draw(self, request: Request, indices: Sequence[int] = (0,), attempt: int = 0) -> list[Completion]:
            asked = any(message["role"] == "tool" for message in request.messages)
            message = TEXT if asked else {"role": "assistant", "content": "", "tool_calls": [call("f", {}, "c1")]}
            return [Completion(message, "m", cost_usd=0.125) for _ in indices]

    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    request = Request(QUERY.messages, tools=(tool,))
    (candidate,) = asyncio.run(rollout(Sampler(), request, World(), [0]))  # type: ignore[arg-type]
    assert candidate.cost_usd == pytest.approx(0.125 * 2 + 0.5)


def test_blocks_are_separate_and_unknown_prices_are_no_cost() -> None:
    with metered() as outer:
        paid(b"a", 1.0)
        with metered() as inner:
            paid(b"b", 2.0)
    paid(b"c", 4.0)
    assert costs_of([outer, inner]) == [1.0, 2.0]
    assert costs_of([Meter(), Meter({(b"x", 0, 0): None})]) == [None, None]
