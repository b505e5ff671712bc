"""The rows of a training have the reasoning where the chat template reads it."""

from __future__ import annotations

import pytest
from datasets import Dataset, Features, Json, List

from bestofn.builders.training.data import with_reasoning_for

THOUGHT = {"role": "assistant", "content": "4", "reasoning_content": "2+2"}
PLAIN = {"role": "assistant", "content": "5"}


def rows() -> Dataset:
    features = Features({"chosen": List(Json()), "rejected": List(Json())})
    return Dataset.from_list(
        [{"chosen": [PLAIN], "rejected": [PLAIN]}, {"chosen": [THOUGHT], "rejected": [PLAIN]}], features
    )


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ message.reasoning_content }}", THOUGHT),
        ("{{ message.thinking }}", {"role": "assistant", "content": "4", "thinking": "2+2"}),
        ("{{ message.content }}", {"role": "assistant", "content": "<think>\n2+2\n</think>\n\n4"}),
    ],
)
def test_reasoning_is_where_the_template_reads_it(template: str, message: dict[str, str]) -> None:
    moved = with_reasoning_for(rows(), template)
    assert moved["chosen"][1] == [message]
    assert moved["chosen"][0] == moved["rejected"][1] == [PLAIN]


def test_rows_without_reasoning_are_unchanged() -> None:
    plain = rows().select([0])
    assert with_reasoning_for(plain, "{{ message.content }}") is plain
