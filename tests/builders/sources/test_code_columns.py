"""The entry point of a dataset's tests is checked when the dataset is read, before any request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bestofn.builders.errors import ConfigError
from bestofn.builders.sources.code_columns import CodeColumns
from bestofn.builders.sources.mapped import Mapped

CHECK = "def check(candidate):\n    assert candidate(1) == 2"


@pytest.mark.parametrize("settings", [{}, {"entry_point": "name"}])
def test_check_without_an_entry_point_is_refused(settings: dict[str, str], tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"id": "1", "question": "Write f.", "tests": CHECK, "name": ""}))
    source = Mapped(str(rows), format="jsonl", tests={"form": "check", **settings})
    with pytest.raises(ConfigError, match="entry_point"):
        list(source)


@pytest.mark.parametrize("entry_point", ["f", "Solution().f", "make(1).f"])
def test_names_and_expressions_are_entry_points(entry_point: str) -> None:
    columns = CodeColumns.of({"form": "check", "entry_point": "name"})
    tests = columns.read(CHECK, {"name": entry_point})
    assert tests is not None
    assert tests.entry_point == entry_point


def test_an_entry_point_that_is_no_expression_is_refused() -> None:
    with pytest.raises(ConfigError, match="neither a name nor a Python expression"):
        CodeColumns.of({"form": "check", "entry_point": "name"}).read(CHECK, {"name": "f("})


def test_tests_that_call_check_themselves_need_no_entry_point() -> None:
    assert CodeColumns.of({"form": "check"}).read(f"{CHECK}\n\ncheck(f)\n", {}) is not None
    assert CodeColumns.of({"form": "check"}).read("assert f(1) == 2", {}) is not None
