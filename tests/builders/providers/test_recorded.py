"""Recorded answers are read in all forms that datasets use. Without ``n``, all answers are used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bestofn.builders.concurrency.event_loop import Loop
from bestofn.builders.errors import ConfigError
from bestofn.builders.providers.recorded import Recorded
from bestofn.builders.records import Query
from bestofn.builders.schema import query_to_row
from bestofn.builders.stages.generate import Generate
from tests.commands import run_here


def query(*answers: Any) -> Query:
    return Query("q", "math", ({"role": "user", "content": "2+2?"},), metadata={"candidates": list(answers)})


def test_all_recorded_answers_are_read_unless_n_limits_them() -> None:
    row = query_to_row(query(*map(str, range(9))))
    with Loop() as loop:
        assert len(loop.run(Generate(sampler=Recorded()).compute(row))["candidates"]) == 9
        assert len(loop.run(Generate(sampler=Recorded(), n=3).compute(row))["candidates"]) == 3


@pytest.mark.parametrize(
    "answer",
    [
        "4",
        {"content": "4"},
        {"role": "assistant", "content": "4"},
        {"model": "m", "response": "4"},
        {"text": "4"},
        {"generated_text": "4"},
        [{"role": "assistant", "content": "4"}],
        [{"content": [{"type": "text", "text": "4"}]}],
    ],
)
def test_the_text_of_a_recorded_answer_is_found(answer: Any) -> None:
    (candidate,) = Recorded().answers_for(query(answer))
    assert candidate.text == "4"


@pytest.mark.parametrize("answer", [5, {"content": 5}, {"answer": "4"}, {}, [], [{"role": "assistant"}], ["4"]])
def test_a_value_that_is_no_answer_is_refused(answer: Any) -> None:
    with pytest.raises(ConfigError, match=r"a recorded response is (.|\n)*each: KEY"):
        Recorded().answers_for(query(answer))


@pytest.mark.parametrize("null", [None, float("nan"), {"role": "assistant", "content": None}])
def test_a_null_answer_is_left_out_and_counted(null: Any) -> None:
    asked = query("3", null, "4")
    assert [(one.index, one.text) for one in Recorded().answers_for(asked)] == [(0, "3"), (1, "4")]
    assert Recorded().null_answers(asked) == 1


def test_a_build_reports_null_answers(tmp_path: Path) -> None:
    rows = [{"id": str(i), "question": f"{i}+1?", "answer": str(i + 1), "responses": ["2", None]} for i in range(3)]
    data = tmp_path / "rows.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["build", "dataset=jsonl", f"dataset.path={data}", "dataset.columns.candidates=responses"]
    words += ["provider=recorded", "sandbox=none", "tools=none", f"out={tmp_path}/run"]
    for _ in range(2):  # also if the run is already complete
        done = run_here(words)
        assert done.returncode == 0, done.stderr
        assert "Skipped: 3 recorded answers that are null" in done.stdout
        assert "3 queries, 3 candidates" in done.stdout
