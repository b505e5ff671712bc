"""Checks in a column of objects: Arrow gives every object the keys of all rows, and null where it lacks one."""

from __future__ import annotations

import pytest

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
