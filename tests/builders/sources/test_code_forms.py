"""Calls and their results in the encodings of APPS, TACO and LiveCodeBench, judged as those datasets judge them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.sources.code_forms import input_output, livecodebench
from verifiers.code_comparison import accepted

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def lcb_case(output: Any, *arguments: Any) -> Any:
    given = "\n".join(map(json.dumps, arguments))
    told = {"input": given, "output": json.dumps(output), "testtype": "functional"}
    made = livecodebench(json.dumps([told]))
    assert made
    return made[1][0]


def apps_case(output: Any, *arguments: Any) -> Any:
    made = input_output(json.dumps({"inputs": [arguments], "outputs": [output], "fn_name": "f"}))
    assert made
    return made[1][0]


@pytest.mark.parametrize(
    ("expected", "found", "right"),
    [
        ([3], [3], True),
        ([3], 3, False),
        (3, [3], False),
        ([1, 2], (1, 2), True),
        ([[1, 2]], [(1, 2)], True),
        ([1, 2], {1, 2}, False),
        ("ab", ["a", "b"], False),
    ],
)
def test_a_result_of_livecodebench_is_what_stands_there(expected: Any, found: Any, right: bool) -> None:
    assert accepted(lcb_case(expected, [3]), found) is right


@pytest.mark.parametrize(
    ("expected", "found", "right"),
    [
        ([3], [3], True),
        ([3], 3, True),
        ([[3]], [3], True),
        ([[3]], 3, False),
        (3, 3, True),
        (3, [3], False),
        ([1, 2], 1, False),
        ([1, 2], (1, 2), True),
        ([[1, 2]], (1, 2), True),
        ([[[1, 2]]], [(1, 2)], True),
        ([], None, False),
        ({"1": 2}, {1: 2}, True),
        ([{"1": 2}], {1: 2}, True),
        ([{"1": 2}], {"1": 2}, True),
        ({"a": 2}, {"a": 2}, True),
        ({"1": 2}, {2: 1}, False),
    ],
)
def test_a_result_of_apps_stands_bare_or_alone_in_a_list(expected: Any, found: Any, right: bool) -> None:
    assert accepted(apps_case(expected, [3]), found) is right


def test_a_dict_that_is_the_only_argument_of_apps_gets_its_integer_keys_back() -> None:
    assert apps_case(1, {"1": 2, "-3": 4})["args"] == [{1: 2, -3: 4}]
    assert apps_case(1, {"1": 2, "b": 4})["args"] == [{"1": 2, "b": 4}]
    assert apps_case(1, {"1": 2}, 5)["args"] == [{"1": 2}, 5]
    assert lcb_case(1, {"1": 2})["args"] == [{"1": 2}]


@given(JSON, st.lists(JSON, min_size=1, max_size=3))
def test_the_result_itself_is_always_right(expected: Any, arguments: list[Any]) -> None:
    assert accepted(lcb_case(expected, *arguments), expected)
    assert accepted(apps_case(expected, *arguments), expected)
    assert accepted(apps_case([expected], *arguments), expected)


def test_numbers_too_long_to_read_leave_no_tests() -> None:
    long = "1" * 5000
    assert input_output(f'{{"inputs": [[1]], "outputs": [{long}], "fn_name": "f"}}') is None
    assert livecodebench("[" * 100_000) is None
