"""Queries are converted to rows and back. References come back unchanged, because verdicts depend on them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st

from bestofn.builders.formats.exact_json import encode
from bestofn.builders.records import CodeTests, Query, Reference
from bestofn.builders.schema import features, query_from_row, query_to_row
from bestofn.builders.tables.arrow_rows import from_table, to_table

TEXT = st.text(st.characters(exclude_categories=()), max_size=5)  # lone surrogates among them
KEYS = TEXT | st.integers() | st.tuples(st.integers(), TEXT) | st.sampled_from(["py:int", "py:dict", "py:text"])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXT | st.binary(max_size=3)
SCALARS |= st.sampled_from([2**63, -(2**63) - 1, -0.0, 5e-324, 1.7976931348623157e308])
PLAIN = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(KEYS, inner, max_size=3)
        | st.sets(st.integers() | TEXT, max_size=3)
        | st.frozensets(st.tuples(st.integers(), TEXT), max_size=3)
    ),
    max_leaves=8,
)
CASES = st.lists(st.dictionaries(KEYS, PLAIN, max_size=3) | st.fixed_dictionaries({"args": PLAIN, "expected": PLAIN}))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
CALLS = st.lists(st.fixed_dictionaries({"name": TEXT, "arguments": st.dictionaries(TEXT, JSON, max_size=3)}))


def there_and_back(reference: Reference) -> Reference:
    """Return the reference after a conversion to Arrow and back.

    Assert that it is valid JSON for the ``grpo`` table.
    """
    row = query_to_row(Query("q", "code", ({"role": "user", "content": "?"},), reference=reference))
    columns = features()["query"]
    (again,) = from_table(to_table([row], columns), columns)
    assert json.loads(json.dumps(row["reference"], ensure_ascii=False, allow_nan=False)) == row["reference"]
    return query_from_row(again).reference


def typed(value: Any) -> str:
    """Return ``value`` as text that differs for 1, 1.0 and True and for -0.0 and 0.0, and is equal for every NaN."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{typed(key)}: {typed(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({', '.join(map(typed, value))})"
    if isinstance(value, set | frozenset):
        return f"{type(value).__name__}({', '.join(sorted(map(typed, value)))})"
    return f"{value:x}" if type(value) is int else repr(value)


@settings(max_examples=150, deadline=None)
@given(CASES, TEXT)
def test_tests_come_back_exactly(cases: list[dict[Any, Any]], setup: str) -> None:
    tests = CodeTests("function", "python", tuple(cases), "f", setup, 2.5)
    found = there_and_back(Reference(tests=tests)).tests
    assert found
    assert typed(found.cases) == typed(tests.cases)
    assert (found.kind, found.language, found.entry_point, found.setup, found.timeout_s) == (
        *("function", "python", "f", setup, 2.5),
    )


def test_numbers_of_any_length_come_back() -> None:
    case = {"args": [-(7**9000)], "expected": 7**9000}  # more digits than Python writes in tens
    found = there_and_back(Reference(tests=CodeTests("function", "python", (case,), "f"))).tests
    assert found
    assert (found.cases[0] == case) is True


def test_sets_are_written_in_one_order() -> None:
    rows = [encode({"a", "b", 1} if turn else {1, "b", "a"}, str) for turn in range(2)]
    assert rows == [{"py:set": ["a", "b", 1]}] * 2


@settings(max_examples=100, deadline=None)
@given(CALLS, st.dictionaries(TEXT, JSON, max_size=3))
def test_expected_calls_and_states_come_back_exactly(calls: list[dict[str, Any]], state: dict[str, Any]) -> None:
    found = there_and_back(Reference(calls=tuple(calls), state=state))
    assert typed(found.calls) == typed(tuple(calls))
    assert typed(found.state) == typed(state)


def test_calls_stay_json() -> None:
    made = {"name": "f", "arguments": {"a": (1, 2), "b": {1: {3}}}}
    assert there_and_back(Reference(calls=(made,))).calls == (
        {"name": "f", "arguments": {"a": [1, 2], "b": {"1": [3]}}},
    )


def test_what_json_keeps_is_stored_as_it_is() -> None:
    case = {"args": [1, 0.5, "é"], "expected": {"a": [None, True]}}
    call = {"name": "f", "arguments": {"$set": {"a": 1}}}
    reference = Reference(tests=CodeTests("function", "python", (case,), "f"), calls=(call,))
    row = query_to_row(Query("q", "code", ({"role": "user", "content": "?"},), reference=reference))
    assert row["reference"]["tests"]["cases"] == [case]
    assert row["reference"]["calls"] == [call]


@pytest.mark.parametrize("value", [2**70, float("inf"), {1: 2}, (1,), "\ud800"])
def test_any_reader_of_the_rows_can_read_them(value: Any) -> None:
    tests = CodeTests("function", "python", ({"args": [value], "expected": value},), "f")
    row = query_to_row(Query("q", "code", ({"role": "user", "content": "?"},), reference=Reference(tests=tests)))
    columns = features()["query"]
    assert Dataset(to_table([row], columns)).to_list()[0]["reference"] == row["reference"]
