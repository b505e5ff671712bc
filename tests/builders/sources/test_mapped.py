"""What a mapping takes for a group."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from builders.sources.mapped import Mapped


def source(path: Path, rows: list[dict[str, Any]], **settings: Any) -> Mapped:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return Mapped(str(path), **settings)


GROUPED = {"question": "question", "answer": "answer", "candidate": "cand"}


@pytest.mark.parametrize("empty", [None, "", "  "])
def test_rows_without_a_group_are_left_out(tmp_path: Path, empty: Any) -> None:
    rows = [
        {"pid": empty, "question": "2+2?", "answer": "4", "cand": "4"},
        {"pid": empty, "question": "3+3?", "answer": "6", "cand": "6"},
        {"pid": 0, "question": "1+1?", "answer": "2", "cand": "2"},
    ]
    found = source(tmp_path / "a.jsonl", rows, group_by="pid", columns=GROUPED, max_queries=1)
    assert [(query.id, query.metadata["candidates"]) for query in found] == [("0", ["2"])]
    assert found.skipped == {"no group": 2}


def test_empty_cells_of_csv_are_no_group(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("pid,question,answer,cand\n,2+2?,4,4\n,3+3?,6,6\nNone,1+1?,2,2\n")
    found = Mapped(str(tmp_path / "a.csv"), group_by="pid", columns=GROUPED)
    assert [(query.id, query.reference.answer) for query in found] == [("None", "2")]
    assert found.skipped == {"no group": 2}
