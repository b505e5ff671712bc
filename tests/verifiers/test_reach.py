"""An answer gets pass or fail only if ``verified_by`` names a verifier for its query."""

from __future__ import annotations

import asyncio

import pytest

from bestofn.builders.protocols import verified_by
from bestofn.builders.records import Candidate, CodeTests, Query, Reference
from bestofn.verifiers.by_split import BySplit, routed
from bestofn.verifiers.cascade import Cascade
from bestofn.verifiers.choice import ChoiceVerifier
from bestofn.verifiers.math import MathVerifier
from bestofn.verifiers.refusal.classifier import RefusalClassifier
from bestofn.verifiers.short_answer import ShortAnswerVerifier
from bestofn.verifiers.stance.flawed_problems import PosedVerifier
from bestofn.verifiers.tools.verifier import ToolVerifier

DOMAINS = {
    "math": MathVerifier(),
    "choice": ChoiceVerifier(),
    "short_answer": ShortAnswerVerifier(),
    "tool_calling": ToolVerifier(),
    "code": None,
}
TESTS = CodeTests("asserts", "python", ({"source": "assert f(1) == 2"},))


def query(split: str = "", text: str = "What is 2 + 2?", **reference: object) -> Query:
    return Query("q", split, ({"role": "user", "content": text},), reference=Reference(**reference))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        (query(), ""),
        (query("math"), ""),
        (query("math", answer=""), ""),
        (query("math", answer="4"), "math"),
        (query("gsm8k", answer="4"), "math"),
        (query("choice", answer="B", choices=("3", "4")), "choice"),
        (query("choice", answer="Z", choices=("3", "4")), ""),
        (query("chat", answer="Paris"), "short_answer"),
        (query("chat"), ""),
        (query("tool_calling", calls=()), "tool"),
        (query("tool_calling", calls=(), source="model"), ""),
        (query("tool_calling", facts=("4",)), "tool"),
        (query("tool_calling"), ""),
        (query("code", tests=TESTS), ""),
        (query("code"), ""),
    ],
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_query_is_verified_by_the_verifier_of_its_domain(asked: Query, name: str, wrapped: bool) -> None:
    by_split = BySplit(DOMAINS)
    verifier = PosedVerifier(routed(domains=DOMAINS, refusals=RefusalClassifier())) if wrapped else by_split
    assert verified_by(verifier, asked) == name
    if not name:
        candidate = Candidate(0, ({"role": "assistant", "content": "The answer is 4."},))
        assert asyncio.run(by_split.verify(asked, candidate)).outcome == "abstain"


def test_a_flawed_problem_is_verified_by_its_stance() -> None:
    flawed = Query("q", "vague", ({"role": "user", "content": "Fix it."},), metadata={"posed": "vague"})
    assert verified_by(PosedVerifier(BySplit({})), flawed) == "posed"


def test_a_cascade_reaches_what_either_verifier_reaches() -> None:
    class Mine:
        name = "mine"

    cascade = Cascade(MathVerifier(), Mine())  # type: ignore[arg-type]
    assert verified_by(cascade, query("math", answer="4")) == "math"
    assert verified_by(cascade, query("math")) == "mine"
    assert verified_by(Cascade(MathVerifier(), None), query("math")) == ""
    assert verified_by(None, query("math", answer="4")) == ""
