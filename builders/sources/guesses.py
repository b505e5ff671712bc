"""Guesses the columns of a table that ``resolver.resolve`` cannot know. ``bestofn init`` shows them to the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from bestofn.builders.records import Row
from bestofn.builders.sources.columns import Column
from bestofn.builders.sources.resolver import Layout

LONG = 200  # characters; a longer text is not a final answer
SIMILAR = {
    "question": ("question", "problem", "prompt", "query", "instruction", "task", "input", "user", "text"),
    "reference": (
        "answer",
        "gold",
        "truth",
        "target",
        "label",
        "expected",
        "solution",
        "result",
        "correct",
        "reference",
    ),
    "tests": ("test",),
    "choices": ("choice", "option"),
}  # fmt: skip
"""Part of a query -> words that names of its column often contain, the best first."""
REFERENCE_PARTS = frozenset({"reference", "references", "tests", "calls", "checks"})


def with_guesses(layout: Layout, rows: Sequence[Row]) -> tuple[Layout, tuple[str, ...]]:
    """Return ``layout`` with columns for the parts that it lacks, and these parts.

    A column is chosen if its name is similar to the name of the part and its values have a suitable type. ``rows`` are
    the first rows of the table.
    """
    row = {name: value for one in reversed(rows) for name, value in one.items() if value is not None}
    columns = dict(layout.columns)
    guessed: list[str] = []

    def choose(part: str, fits: Callable[[object], bool]) -> None:
        used = {name for column in columns.values() for name in column.column_names}
        free = [name for name in row if name not in used and fits(row[name])]
        name = next((name for word in SIMILAR[part] for name in free if word in name.lower()), "")
        if not name and part == "question":
            name = max(free, key=lambda one: sum(len(str(other.get(one) or "")) for other in rows), default="")
        if name:
            columns[part] = Column.of(part, name)
            guessed.append(part)

    if not {"question", "messages"} & set(columns):
        choose("question", lambda value: isinstance(value, str))
    if "choices" not in columns:
        choose("choices", lambda value: isinstance(value, list | Mapping))
    if not {"tests", "calls"} & set(columns):
        choose("tests", lambda value: isinstance(value, str | list | Mapping) and "assert" in str(value))
    if not (REFERENCE_PARTS | {"tools"}) & set(columns):
        choose("reference", lambda value: isinstance(value, str | int | float) and len(str(value)) <= LONG)
    return replace(layout, columns=columns), tuple(guessed)


def group_of(layout: Layout, rows: Sequence[Row]) -> str:
    """Return the column of the question if questions repeat and each row has one response; "" otherwise."""
    question = layout.columns.get("question")
    if "response" not in layout.columns or question is None or not question.is_name:
        return ""
    texts = [str(question.value(row)) for row in rows]
    return question.path if len(set(texts)) < len(texts) else ""
