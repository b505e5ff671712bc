"""The rule of what may be taught, and where its settings come from."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from bestofn.builders.pairing.rules import PairRules, rules_of, teachable
from bestofn.builders.pairing.strategies import best_vs_worst
from bestofn.builders.records import Candidate, Judged, Score, Verdict

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
