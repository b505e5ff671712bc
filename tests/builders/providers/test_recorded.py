"""Recorded answers are read in the forms that datasets have, and all of them by default."""

from __future__ import annotations

from typing import Any

import pytest

from bestofn.builders.concurrency.event_loop import Loop
from bestofn.builders.errors import ConfigError
from bestofn.builders.providers.recorded import Recorded
from bestofn.builders.records import Query
from bestofn.builders.schema import query_to_row
from bestofn.builders.stages.generate import Generate


def query(*answers: Any) -> Query:
    return Query("q", "math", ({"role": "user", "content": "2+2?"},), metadata={"candidates": list(answers)})


def test_all_recorded_answers_are_read_unless_n_limits_them() -> None:
    row = query_to_row(query(*map(str, range(9))))
    with Loop() as loop:
        assert len(loop.run(Generate(sampler=Recorded())(row))["candidates"]) == 9
        assert len(loop.run(Generate(sampler=Recorded(), n=3)(row))["candidates"]) == 3


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


@pytest.mark.parametrize("answer", [5, None, {"content": 5}, {"answer": "4"}, {}, [], [{"role": "assistant"}], ["4"]])
def test_a_value_that_is_no_answer_is_refused(answer: Any) -> None:
    with pytest.raises(ConfigError, match=r"a recorded answer is (.|\n)*each: KEY"):
        Recorded().answers_for(query(answer))
