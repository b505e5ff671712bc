"""Chooses the columns of a table for the parts of a query by their usual names. ``mapped`` uses it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from bestofn.builders.records import Row
from bestofn.builders.sources.columns import Column
from bestofn.builders.sources.values import as_list

USUAL_NAMES = {
    "id": ("query_id", "uuid", "unique_id", "task_id", "id"),
    "question": ("question", "problem", "prompt", "instruction", "query", "text", "input"),
    "messages": ("messages", "conversations", "conversation"),
    "answer": (
        "answer", "gold", "gold_answer", "expected_answer", "final_answer", "reference_answer", "correct_answer",
        "ground_truth", "target", "label", "answerKey",
    ),
    "choices": ("choices", "options"),
    "solution": ("solution", "response", "output"),
    "tools": ("tools",),
    "calls": ("calls", "expected_calls"),
    "tests": ("test_list", "tests", "test"),
    "candidates": ("candidates", "generations", "completions", "responses"),
}  # fmt: skip
"""Part of a query -> usual column names. If ``columns`` does not map the part, the first existing column is used."""
PROMPT_PARTS = {"question", "messages"}
JOINED = {"instruction": ("instruction", "input")}
"""Column of the question -> the columns whose texts together are the question (Alpaca)."""


def usual_columns(mapped: Mapping[str, Column], row: Row, never: Collection[str] = ()) -> dict[str, Column]:
    """Return the columns of ``row`` for the parts that are neither in ``mapped`` nor in ``never``."""
    chosen: dict[str, Column] = {}
    for part, names in USUAL_NAMES.items():
        known = {**mapped, **chosen}
        if part in known or part in never or _is_known(part, known, row):
            continue
        taken = {name for column in known.values() for name in column.column_names}
        if name := next((name for name in names if name not in taken and _fits(name, row)), None):
            part = "messages" if part == "question" and _is_conversation(row[name]) else part
            chosen[part] = _column(part, name, row)
    return chosen


def _is_conversation(value: object) -> bool:
    """Return whether ``value`` is a list of messages. The prompts in TRL's tables have this form."""
    items = as_list(value)
    return bool(items) and all(isinstance(item, Mapping) and {"role", "from"} & item.keys() for item in items)


def column_uses(mapped: Mapping[str, Column], row: Row) -> dict[str, str]:
    """Return a dict from each column of ``row`` to the part of a query that uses it; "" if no part uses the column."""
    used = {name: part for part, column in mapped.items() for name in column.column_names}
    return {name: used.get(name, "") for name in row}


def _is_known(part: str, known: Mapping[str, Column], row: Row) -> bool:
    """Return whether ``part`` needs no column of its own.

    The prompt may come from ``question`` or ``messages``, and the recorded answers from ``candidate``.
    """
    if part in PROMPT_PARTS:
        return bool(PROMPT_PARTS & set(known)) or (part == "question" and "messages" in row)
    return part == "candidates" and "candidate" in known


def _fits(name: str, row: Row) -> bool:
    """Return whether ``row`` has a column ``name`` that can be used.

    A boolean ``label`` is not used, because it rates an answer (KTO). Expected calls are not used if the row declares
    no tools.
    """
    if name in USUAL_NAMES["calls"] and "tools" not in row:
        return False
    return name in row and not (name == "label" and isinstance(row[name], bool))


def _column(part: str, name: str, row: Row) -> Column:
    joined = [other for other in JOINED.get(name, ()) if other in row] if part == "question" else []
    return Column(part, join=joined) if len(joined) > 1 else Column.of(part, name)
