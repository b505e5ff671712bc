"""Files of other tools whose rows are nested: where the parts of a query are in them. ``sources.resolver`` uses it.

A row has a format if a value is at each of its ``marks``. A part may be at several places: the first that has a value
in the row is used. Parts that no place fills are found by the names of the columns, as in any other table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bestofn.builders.records import Row
from bestofn.builders.sources.columns import Column, walk

QUESTIONS = ("question", "problem", "prompt", "instruction", "query", "text", "input")
Place = str | Mapping[str, object]


def _texts(value: object) -> bool:
    return isinstance(value, str)


def _objects(value: object) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(one, Mapping) for one in value)


def _any(value: object) -> bool:
    return value is not None


@dataclass(frozen=True)
class Format:
    """The rows of one tool. ``marks``: path -> form of its value. ``parts``: part of a query -> its places."""

    name: str
    marks: Mapping[str, Callable[[object], bool]]
    parts: Mapping[str, Sequence[Place]]

    def columns(self, row: Row) -> dict[str, Column]:
        """Return the columns of ``row`` by part; {} if it has another format."""
        if not all(fits(_at(row, path)) for path, fits in self.marks.items()):
            return {}
        found: dict[str, Column] = {}
        for part, places in self.parts.items():
            for column in (Column.of(part, place) for place in places):
                if column.path.split(".")[0].split("[")[0] in row and column.value(row) not in (None, ""):
                    found[part] = column
                    break
        return found


def _at(row: Row, path: str) -> object:
    return walk(row, path, "", strict=False)


FORMATS = (
    Format(
        "samples of lm-evaluation-harness",
        {"doc": lambda value: isinstance(value, Mapping), "resps[0][0]": _texts},
        {
            "question": [*(f"doc.{name}" for name in QUESTIONS), "arguments.gen_args_0.arg_0", "arguments[0][0]"],
            "candidates": ["resps[0]"],
            "reference": ["target"],
        },
    ),
    Format(
        "output of OpenAI's batch API, Chat Completions",
        {"custom_id": _any, "response.body.choices": _objects},
        {"id": ["custom_id"], "candidates": [{"path": "response.body.choices", "each": "message"}]},
    ),
    Format(
        "output of OpenAI's batch API, Responses",
        {"custom_id": _any, "response.body.output[-1].content[0].text": _texts},
        {"id": ["custom_id"], "response": ["response.body.output[-1].content[0].text"]},
    ),
    Format(
        "log of inspect",
        {"input": _any, "output.completion": _texts},
        {"messages": ["input"], "response": ["output.completion"], "reference": ["target"]},
    ),
    Format(
        "offline outputs of vLLM",
        {"prompt": _any, "outputs[0].text": _texts},
        {"question": ["prompt"], "candidates": [{"path": "outputs", "each": "text"}]},
    ),
    Format(
        "rollouts of NeMo Gym",
        {"responses_create_params.input": _any, "response.output[-1].content[0].text": _texts},
        {"messages": ["responses_create_params.input"], "response": ["response.output[-1].content[0].text"]},
    ),
)


def known_columns(row: Row) -> dict[str, Column]:
    """Return the columns of ``row`` by part, if it has one of ``FORMATS``; otherwise {}."""
    return next((found for one in FORMATS if (found := one.columns(row))), {})
