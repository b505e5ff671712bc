"""An answer is verified in several parts: the combined outcome, the weights, and how a row selects the parts."""

from __future__ import annotations

import asyncio
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestofn.builders.errors import ConfigError
from bestofn.builders.protocols import verified_by
from bestofn.builders.records import Candidate, Outcome, Query, Reference, Verdict
from bestofn.verifiers.by_split import BySplit, domains_of, every
from bestofn.verifiers.constraints import ConstraintsVerifier
from bestofn.verifiers.every import Every, combine
from bestofn.verifiers.math import MathVerifier
from bestofn.verifiers.short_answer import ShortAnswerVerifier
from bestofn.verifiers.tools.verifier import ToolVerifier

OUTCOMES: tuple[Outcome, ...] = ("pass", "fail", "abstain", "error")
DOMAINS = {
    "math": MathVerifier(),
    "short_answer": ShortAnswerVerifier(),
    "tool_calling": ToolVerifier(),
    "constraints": ConstraintsVerifier(),
}


class Says:
    """A verifier that returns one outcome for every answer. For "raise", it raises an error."""

    name = "says"

    def __init__(self, outcome: str) -> None:
        self.outcome = outcome

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        if self.outcome == "raise":
            raise ValueError("broken")
        return Verdict(self.outcome, 0.8, self.outcome, self.name)  # type: ignore[arg-type]


def query(text: str = "What is 2 + 2?", split: str = "", **reference: object) -> Query:
    return Query("q", split, ({"role": "user", "content": text},), reference=Reference(**reference))  # type: ignore[arg-type]


def verdict(verifier: object, asked: Query, text: str) -> Verdict:
    return asyncio.run(verifier.verify(asked, Candidate(0, ({"role": "assistant", "content": text},))))  # type: ignore[attr-defined]


@pytest.mark.parametrize(("one", "other"), list(product(OUTCOMES, OUTCOMES)))
def test_a_conjunction_passes_only_if_all_pass_and_fails_if_one_fails(one: Outcome, other: Outcome) -> None:
    outcome, _ = combine({"a": one, "b": other}, {})
    expected = (
        "fail" if "fail" in (one, other)
        else "error" if "error" in (one, other)
        else "abstain" if "abstain" in (one, other)
        else "pass"
    )  # fmt: skip
    assert outcome == expected


@given(
    st.dictionaries(st.text(max_size=3), st.sampled_from(OUTCOMES), min_size=1, max_size=5),
    st.floats(0.05, 1),
)
def test_deciding_an_undecided_part_never_reverses_a_decision(outcomes: dict[str, Outcome], threshold: float) -> None:
    outcome, _ = combine(outcomes, {}, threshold)
    if outcome in ("pass", "fail"):
        for decided in ("pass", "fail"):
            settled = {name: decided if one in ("abstain", "error") else one for name, one in outcomes.items()}
            assert combine(settled, {}, threshold)[0] == outcome  # type: ignore[arg-type]


def test_weights_and_threshold() -> None:
    outcomes: dict[str, Outcome] = {"a": "pass", "b": "fail"}
    assert combine(outcomes, {"a": 3}, 0.75) == ("pass", 0.75)
    assert combine(outcomes, {"a": 3}, 0.8) == ("fail", 0.75)
    assert combine({"a": "pass", "b": "abstain"}, {}, 0.8) == ("abstain", 0.5)


def test_a_part_that_raises_is_an_error_and_does_not_hide_a_fail() -> None:
    broken = verdict(Every({"a": Says("raise"), "b": Says("pass")}), query(), "4")
    assert (broken.outcome, broken.detail["parts"]["a"]["outcome"]) == ("error", "error")
    assert verdict(Every({"a": Says("raise"), "b": Says("fail")}), query(), "4").outcome == "fail"
    assert verdict(Every({"a": None, "b": Says("pass")}), query(), "4").outcome == "abstain"


def test_the_row_says_what_is_verified() -> None:
    few = {"constraints": [{"id": "words", "max": 4}]}
    assert domains_of(query(answer="4", checks=few), DOMAINS) == ["math", "constraints"]
    assert domains_of(query(answer="4", calls=(), checks=few), DOMAINS) == ["math", "tool_calling", "constraints"]
    assert domains_of(query(checks={**few, "every": {"threshold": 0.5}}), DOMAINS) == ["constraints"]


@pytest.mark.parametrize(
    ("text", "outcome"),
    [("It is 4.", "pass"), ("It is 5.", "fail"), ("After a long thought I say that it is 4.", "fail")],
)
def test_an_answer_must_be_right_and_keep_its_constraints(text: str, outcome: str) -> None:
    asked = query(answer="4", calls=(), checks={"constraints": [{"id": "words", "max": 4}]})
    found = verdict(BySplit(DOMAINS), asked, text)
    assert (found.outcome, found.verifier) == (outcome, "every")
    assert set(found.detail["parts"]) == {"math", "tool_calling", "constraints"}
    assert verified_by(BySplit(DOMAINS), asked) == "every"


def test_a_query_may_lower_the_threshold() -> None:
    checks = {"constraints": [{"id": "words", "max": 4}], "every": {"threshold": 0.4, "weights": {"math": 1}}}
    assert verdict(BySplit(DOMAINS), query(answer="4", checks=checks), "I am sure that it is 4.").outcome == "pass"


def test_every_also_combines_references_without_checks() -> None:
    asked = query(answer="4", calls=())
    assert verdict(BySplit(DOMAINS), asked, "It is 4.").verifier == "tool"
    assert verdict(every(domains=DOMAINS), asked, "It is 4.").verifier == "every"
    assert verdict(every(domains=DOMAINS), query(answer="4"), "It is 4.").verifier == "math"


def test_a_weight_of_no_domain_is_refused() -> None:
    with pytest.raises(ConfigError, match="names maths"):
        every(domains=DOMAINS, weights={"maths": 1.0})


def test_a_check_without_a_verifier_is_not_reached() -> None:
    asked = query(checks={"poetry": {}})
    assert verified_by(BySplit(DOMAINS), asked) == ""
    assert verdict(BySplit(DOMAINS), asked, "Roses").outcome == "abstain"
