"""Checks in a column of objects: Arrow gives every object the keys of all rows, and null where it lacks one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from datasets import Dataset

from bestofn.builders.sources.code_forms import code_tests
from bestofn.builders.sources.row_reader import RowReader
from bestofn.builders.sources.values import check_of_struct

NAME = {"type": "string", "const": "Ada"}


@pytest.mark.parametrize(
    ("name", "check", "known"),
    [
        ("constraints", {"kwargs": [{"num_words": 3, "keyword": None}]}, {"kwargs": [{"num_words": 3}]}),
        (
            "structured",
            {"schema": {"properties": {"a": NAME, "b": None}}, "value": None},
            {"schema": {"properties": {"a": NAME}}},
        ),
        ("structured", {"value": {"a": 1, "b": None}}, None),
        ("structured", {"schema": {"const": None}}, None),
        ("structured", {"schema": {"allOf": [{"enum": [{"a": None}]}]}}, None),
        ("structured", {"schema": {"enum": [None, 1]}}, {"schema": {"enum": [None, 1]}}),
        ("shell", {"after": {"a.txt": None}}, None),
        ("chemistry", "2 H2 + O2 -> 2 H2O", "2 H2 + O2 -> 2 H2O"),
    ],
)
def test_a_null_is_a_missing_key_or_the_check_is_left_out(name: str, check: object, known: object) -> None:
    assert check_of_struct(name, check) == known


def test_tests_of_several_kinds_are_read_alike_from_objects_json_text_and_arrow() -> None:
    rows: list[dict[str, object]] = [
        {"kind": "asserts", "language": "python", "cases": [{"source": "assert f(1) == 2"}]},
        {"kind": "function", "language": "python", "entry_point": "f", "cases": [{"args": [1], "expected": None}]},
        {"kind": "stdin", "language": "python", "cases": [{"stdin": "1\n", "stdout": "2\n"}]},
    ]
    table = Dataset.from_list([{"tests": row} for row in rows])["tests"]
    for row, of_arrow in zip(rows, table, strict=True):
        known, *others = (code_tests(one, "auto", "python", "", "", None) for one in (row, json.dumps(row), of_arrow))
        assert known is not None
        assert others == [known, known]


def test_objects_of_arrow_with_a_null_entry_are_no_arguments() -> None:
    cases = [{"args": [{"a": 1}], "expected": 1}, {"args": [{"b": 2}], "expected": 2}]
    tests = {"kind": "function", "language": "python", "cases": cases, "entry_point": "f"}
    table: list[Any] = [*Dataset.from_list([{"question": "Write f.", "tests": tests}])]
    reader = RowReader(structs=True)
    reader.examine(table)
    query = reader.query(table[0])
    assert query is not None
    assert query.reference.tests is None
    assert [reason for reason in reader.skipped if "null" in reason]
