"""Answers to multiple-choice questions whose letters are easily misread."""

from __future__ import annotations

import pytest

from bestofn.verifiers.choice import judge_choice

CITIES = ("Paris", "Rome", "Oslo", "Bern")
STATEMENTS = ("I only", "II only", "I and II", "None of the above")
PLANETS = ("Jupiter", "Mars", "Both A and B", "None of the above")


@pytest.mark.parametrize(
    ("gold", "text", "options"),
    [
        ("C", "A is Paris, France. B is Rome, Italy. C is Oslo, Norway. D is Bern.", CITIES),
        ("C", "A. Paris – False\nB. Rome – False\nC. Oslo – True\nD. Bern – False", CITIES),
        ("C", "D is a distractor; the right one is C", CITIES),
        ("C", "Both I and II are true.", STATEMENTS),
        ("C", "I would say both I and II.", STATEMENTS),
        ("C", "A and B", PLANETS),
        ("AC", "A) Paris and C) Oslo", CITIES),
        ("AC", "The answers are (A) Paris and (C) Oslo.", CITIES),
    ],
)
def test_a_right_answer_does_not_fail(gold: str, text: str, options: tuple[str, ...]) -> None:
    assert judge_choice((gold,), text, options).outcome != "fail"


@pytest.mark.parametrize(
    "text",
    [
        "All options except C are correct.",
        "Although C seems right, B is the best answer.",
        "The answer is C? No. It is B.",
        "A. Paris – False\nB. Rome – True\nC. Oslo – False\nD. Bern – False",
    ],
)
def test_a_wrong_answer_does_not_pass(text: str) -> None:
    assert judge_choice(("C",), text, CITIES).outcome != "pass"


@pytest.mark.parametrize(
    "text", ["D is wrong. The answer is C.", "C is correct.", "(C) is the best answer.", "The answer is C) Oslo."]
)
def test_clear_answers_are_read(text: str) -> None:
    assert judge_choice(("C",), text, CITIES).outcome == "pass"
