"""Equations of degree 1 are equal exactly if their coefficients are proportional."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestofn.verifiers.math import judge
from bestofn.verifiers.math.reading import read
from bestofn.verifiers.math.rules.relations import coefficients, difference

CONSTANT = st.integers(-9, 9)
COEFFICIENTS = st.tuples(CONSTANT, CONSTANT, CONSTANT, CONSTANT).filter(lambda numbers: any(numbers[:3]))


def written(numbers: tuple[int, ...]) -> str:
    """Return an equation as a line of text. ``numbers`` are its coefficients of x, y and z, and its constant."""
    return "".join(f"{number:+}{name}" for number, name in zip(numbers, ("x", "y", "z", ""), strict=True)) + " = 0"


@given(COEFFICIENTS, st.integers(-5, 5).filter(bool))
def test_a_multiple_of_an_equation_is_equal(numbers: tuple[int, ...], factor: int) -> None:
    multiple = written(tuple(number * factor for number in numbers))
    assert judge(written(numbers), rf"\boxed{{{multiple}}}").outcome == "pass"


@given(COEFFICIENTS, COEFFICIENTS)
def test_other_coefficients_never_pass(ours: tuple[int, ...], theirs: tuple[int, ...]) -> None:
    place = next(place for place, number in enumerate(ours) if number)
    ratio = Fraction(theirs[place], ours[place])
    proportional = ratio != 0 and all(ratio * number == other for number, other in zip(ours, theirs, strict=True))
    outcome = judge(written(ours), rf"\boxed{{{written(theirs)}}}").outcome
    assert (outcome == "pass") == proportional


@pytest.mark.parametrize(
    ("equation", "expected"),
    [
        ("2x - y/3 = 4(y + 1)", {"": -4, "x": 2, "y": Fraction(-13, 3)}),
        ("x - x = 0", {}),
        ("xy = 1", {}),
        ("1/x = 2", {}),
        ("x/0 = 2", {}),
        ("0.5x = 1", {}),  # 0.5 may be rounded
        (r"\pi x = 1", {}),
        ("x^2 = 4", {}),
    ],
)
def test_coefficients_of_an_equation(equation: str, expected: dict[str, Fraction]) -> None:
    """The coefficients are exact. There are none if the degree is not 1, or if a number may be rounded."""
    tree = read(equation)
    assert coefficients(difference(*tree.args)) == expected
