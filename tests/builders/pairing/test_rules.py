"""The rule that decides which candidates may be used for training, and the source of its settings."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import pytest

from bestofn.builders.formats.trainable import renumbered
from bestofn.builders.pairing.rules import PairRules, eligible_sides, rules_of, teachable
from bestofn.builders.pairing.strategies import best_vs_worst
from bestofn.builders.records import Candidate, Judged, Score, Verdict
from bestofn.builders.tables.query_row import trace_of

ANSWER = {"role": "assistant", "content": "4"}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def judged(verdict: dict[str, Any] | None = None, **candidate: Any) -> Judged:
    return Judged(
        Candidate(0, **{"messages": (ANSWER,), **candidate}), Verdict("pass", 1.0, "", "t", verdict or {}), Score(1.0)
    )


@pytest.mark.parametrize(
    ("one", "rule"),
    [
        (judged(stop_reason="length"), "truncated"),
        (judged(stop_reason="content_filter"), "refused"),
        (judged({"refusal": {"is_refusal": True}}), "refused"),
        (judged(detail={"tool_results": [{"source": "llm"}]}), "made_up_tools"),
        (judged(arm="greedy"), "greedy"),
    ],
)
def test_each_rule_accepts_what_is_otherwise_left_out(one: Judged, rule: str) -> None:
    assert not teachable(one, PairRules())
    assert teachable(one, PairRules(**{rule: True}))


def test_content_is_required_and_a_right_refusal_is_teachable() -> None:
    assert teachable(judged(), PairRules())
    assert not teachable(judged(error="timeout"), PairRules())
    assert not teachable(judged(messages=()), PairRules())
    assert not teachable(judged(messages=({"role": "assistant", "content": " "},)), PairRules())
    assert teachable(judged(messages=({"role": "assistant", "content": None, "tool_calls": [CALL]},)), PairRules())
    assert teachable(judged({"refusal": {"is_refusal": True, "right": True}}), PairRules())


def test_rules_come_from_the_pairing() -> None:
    rules = PairRules(greedy=True)
    assert rules_of(functools.partial(best_vs_worst, rules=rules)) is rules
    assert rules_of(best_vs_worst) == PairRules()
    assert rules_of(functools.partial(best_vs_worst, debias_length=True)) == PairRules()


def broken(arguments: Any) -> dict[str, Any]:
    return {**CALL, "function": {"name": "f", "arguments": arguments}}


@pytest.mark.parametrize("arguments", ['{"city": ', "[1]", "NaN", '{"a": NaN}', "[" * 3000])
def test_a_trace_with_an_unreadable_call_is_not_taught(arguments: str) -> None:
    """A trace with an unreadable tool call is not used for training, even if the model corrects the call later."""
    talk = (
        {"role": "assistant", "content": "", "tool_calls": [broken(arguments)]},
        {"role": "tool", "tool_call_id": "c", "content": "error: the arguments are not JSON"},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c", "content": "22"},
        ANSWER,
    )
    assert not teachable(judged(messages=talk), PairRules())
    assert teachable(judged(messages=talk[2:]), PairRules())


def test_an_empty_final_answer_is_not_taught() -> None:
    call = {"role": "assistant", "content": "Let me see.", "tool_calls": [CALL]}
    result = {"role": "tool", "tool_call_id": "c", "content": "22"}
    for empty in ("", " \n", None, []):
        assert not teachable(judged(messages=(call, result, {"role": "assistant", "content": empty})), PairRules())
    assert teachable(judged(messages=(call, result)), PairRules())  # the call is the answer


def trace(first: str, second: str) -> tuple[dict[str, Any], ...]:
    """Return a trace of two calls with the ids ``first`` and ``second``, their results, and an answer."""
    calls = [{**CALL, "id": first}, {**CALL, "id": second}]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": str(place)} for place, call in enumerate(calls)]
    return ({"role": "assistant", "content": "", "tool_calls": calls}, *results, ANSWER)


def test_traces_that_differ_in_call_ids_are_equal() -> None:
    assert renumbered(trace("x", "y")) == renumbered(trace("y", "x")) == renumbered(trace("7f", "call_0"))
    swapped = [*trace("x", "y")]
    swapped[1], swapped[2] = swapped[2] | {"content": "0"}, swapped[1] | {"content": "1"}
    assert renumbered(swapped) != renumbered(trace("x", "y"))
    assert trace_of(trace("x", "y")) == trace_of(trace("a", "b"))
    passed, failed = judged(messages=trace("x", "y")), judged(messages=trace("a", "b"))
    failed = dataclasses.replace(failed, verdict=dataclasses.replace(failed.verdict, outcome="fail"))
    assert eligible_sides([passed, failed], PairRules()) == ([], [])  # one trace with both verdicts
