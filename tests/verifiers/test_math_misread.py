"""Right answers that are easily misread as wrong ones, and wrong answers that are easily misread as right ones."""

from __future__ import annotations

import pytest

from bestofn.verifiers.math_verifier import judge


@pytest.mark.parametrize(
    ("reference", "text"),
    [
        ("7", "7\n\nExplanation: Tom has 12 apples. He eats 5."),
        ("7", "7!"),
        ("2, 3", r"\boxed{2} is one solution and \boxed{3} is the other."),
        ("x^2 + C", "x^2"),
        ("x^2", "x^2 + C"),
        ("1/3", "The probability is 33.3%"),
        ("0", "none"),
        ("1010", "0b1010"),
        ("3+4i", "3+4j"),
        ("3-2", "3:2"),
    ],
)
def test_a_right_answer_does_not_fail(reference: str, text: str) -> None:
    assert judge(reference, text).outcome != "fail"


@pytest.mark.parametrize(
    ("reference", "text", "problem"),
    [
        ("7", "It's not 7.", ""),
        ("7", "x can't be 7.", ""),
        ("$5.50", "€5.50", "What does it cost?"),
        ("1, 2, 3", "3, 2, 1", "Sort 3, 1, 2"),
    ],
)
def test_a_wrong_answer_does_not_pass(reference: str, text: str, problem: str) -> None:
    assert judge(reference, text, problem).outcome != "pass"


@pytest.mark.parametrize(
    ("reference", "text"),
    [
        ("120", "5!"),
        ("7", "The answer is 8!"),
        ("x^2 + C", "x^3"),
        ("x^2 + C", "x^3 + C"),
        ("1/3", "The chance is 34%"),
    ],
)
def test_the_rules_still_decide(reference: str, text: str) -> None:
    assert judge(reference, text).outcome == ("pass" if reference == "120" else "fail")
