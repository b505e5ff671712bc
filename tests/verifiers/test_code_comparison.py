"""Equality of values, outputs and rows, as the code verifier compares them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestofn.verifiers.code_verifier.comparison import accepted, same_output, same_rows, same_value

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("expected", "found", "same"),
    [
        (1, True, False),
        (True, 1, False),
        (1, 1.0, False),
        (1.0, 1, True),
        (0.1 + 0.2, 0.3, True),
        (0.3, 0.3001, False),
        ("1", 1, False),
        ([1, 2], (1, 2), False),
        ((1, 2), (1, 2), True),
        ({1: 2}, {1: 2.0}, False),
        ({1, 2}, {2, 1}, True),
        ({1, 2}, {True, 2}, False),
        (None, 0, False),
        ([], None, False),
        (math.nan, math.nan, True),
        (math.inf, math.inf, True),
        (0.5, math.nan, False),
        (1.0, 10**400, False),
    ],
)
def test_types_are_strict(expected: Any, found: Any, same: bool) -> None:
    assert same_value(expected, found) is same


def test_javascript_has_one_kind_of_number() -> None:
    assert same_value(1, 1.0, "javascript")
    assert not same_value(1, True, "javascript")


def test_a_tuple_is_a_list_only_where_json_was_expected() -> None:
    assert not accepted({"expected": [1, [2]]}, (1, (2,)))
    assert accepted({"expected": [1, [2]], "json": True}, (1, (2,)))
    assert accepted({"expected": {"a": [1]}, "json": True}, {"a": (1,)})
    assert not accepted({"expected": [1, 2], "json": True}, (2, 1))


def test_further_accepted_results_are_compared_as_strictly() -> None:
    assert accepted({"expected": [3], "also": [3]}, 3)
    assert not accepted({"expected": [3], "also": [3]}, True)
    assert not accepted({"expected": [3], "also": [1]}, True)


@given(PLAIN)
def test_a_value_equals_itself(value: Any) -> None:
    assert same_value(value, value)


@given(PLAIN, PLAIN)
def test_what_python_holds_apart_is_apart(one: Any, two: Any) -> None:
    if same_value(one, two) and not isinstance(one, float):
        assert one == two or isinstance(one, (list, tuple, dict))


@pytest.mark.parametrize(
    ("expected", "found", "same"),
    [
        ("4\n", "4", True),
        ("4\n", "4 \r\n\n", True),
        ("1 2\n", "1  2\n", True),
        ("4\n", "5\n4\n", False),
        ("0.5\n", "0.5000001\n", True),
        ("0.5\n", "0.51\n", False),
        ("5\n", "5.0\n", False),
        ("yes\n", "Yes\n", False),
        ("1.5\n", "1" * 1000 + ".5\n", False),
    ],
)
def test_outputs_agree_line_by_line(expected: str, found: str, same: bool) -> None:
    assert same_output(expected, found) is same


@given(st.lists(st.tuples(st.integers(-9, 9), st.text(max_size=2)), max_size=5), st.randoms())
def test_rows_without_an_order_agree_in_any_order(rows: list[Any], chance: Any) -> None:
    turned = list(rows)
    chance.shuffle(turned)
    assert same_rows(rows, turned, ordered=False)
    assert same_rows(rows, turned, ordered=True) is (rows == turned)


def test_text_is_no_number_in_rows() -> None:
    assert not same_rows([[1]], [["1"]], ordered=False)
    assert same_rows([[1]], [[1.0]], ordered=False)
    assert not same_rows([[1]], None, ordered=False)


def test_zero_does_not_equal_a_tiny_expected_value() -> None:
    assert not same_value(3.972e-19, 0.0)
    assert not same_value(1.5e-7, 0.0)
    assert same_value(3.972e-19, 3.9720001e-19)
    assert not same_output("3.972e-19", "0.0")
    assert same_value(1.2246467991473532e-16, 0.0)  # math.sin(math.pi)
    assert same_value(0.0, 1e-9)
    assert same_value(0.001234, 0.001235)
