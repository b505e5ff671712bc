"""Maps the columns of an unknown table to the parts of a query, by names and values. ``bestofn init`` uses it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bestofn.builders.records import JsonObject, Row
from bestofn.builders.sources.columns import Column
from bestofn.builders.sources.final_answers import after_hashes, last_boxed
from bestofn.builders.sources.usual_columns import usual_columns
from bestofn.builders.sources.values import as_list

LONG = 200  # characters; a longer text is not a final answer
TESTS = ("input_output", "test_cases", "unit_tests", "tests", "test_list", "test")
CALLS = ("calls", "expected_calls", "answers", "tool_calls", "ground_truth")
RECORDED = ("candidate", "completion", "generation", "prediction", "model_answer", "model_output", "response")
SIMILAR = {
    "question": ("question", "problem", "prompt", "query", "instruction", "task", "input", "user", "text"),
    "answer": ("answer", "gold", "truth", "target", "label", "expected", "solution", "result", "correct", "reference"),
    "tests": ("test",),
    "choices": ("choice", "option"),
}
"""Part of a query -> words that names of its column often contain, the best first."""


@dataclass(frozen=True, slots=True)
class TableParts:
    """The columns of the parts of a query, as in ``dataset.columns``, and the value of ``dataset.group_by``.

    ``group_by`` is "" if no rows have to be joined. ``guessed`` are the parts whose column does not have a usual name.
    """

    columns: Mapping[str, str | JsonObject]
    group_by: str = ""
    guessed: tuple[str, ...] = ()

    @property
    def recorded(self) -> bool:
        """Whether the table has recorded answers."""
        return bool({"candidate", "candidates"} & set(self.columns))


def table_parts(rows: Sequence[Row]) -> TableParts:
    """Return which fields of a query a table has, and the column of each. ``rows`` are the first rows of the table."""
    row = {name: value for one in reversed(rows) for name, value in one.items() if value is not None}
    columns: dict[str, str | JsonObject] = {}
    _add_tools(columns, row)
    _add_options(columns, row)
    mapped = {part: Column.of(part, value) for part, value in columns.items()}
    for part, column in usual_columns(mapped, row).items():
        columns[part] = {"join": list(column.join)} if column.join else column.path
    _map_solution(columns, rows)
    guessed = _guess(columns, rows, row)
    _add_candidate(columns, row)
    return TableParts(columns, _group(columns, rows), tuple(guessed))


def _add_tools(columns: dict[str, str | JsonObject], row: Row) -> None:
    """Add the columns of tools and expected calls to ``columns``. A column may hold them as JSON text."""
    if "tools" not in row or not _objects(row["tools"]):
        return
    columns["tools"] = _json_column("tools", row)
    if name := next((name for name in CALLS if name in row and _objects(row[name])), ""):
        columns["calls"] = _json_column(name, row)


def _add_options(columns: dict[str, str | JsonObject], row: Row) -> None:
    """Add options to ``columns`` if each option has its own column: A, B, C or option_a, option_b, …"""
    for prefix in ("", "option_", "choice_", "option", "choice"):
        names = {letter: name for letter in "ABCDEFGHIJ" for name in row if name.lower() == f"{prefix}{letter}".lower()}
        if {"A", "B"} <= set(names):
            columns["choices"] = {"fields": names}
            return


def _map_solution(columns: dict[str, str | JsonObject], rows: Sequence[Row]) -> None:
    """Replace the part ``solution`` by the part ``answer``, which reads the final answers in the same column.

    If the table has another reference (answer, tests or calls), ``solution`` is only removed.
    """
    name = columns.pop("solution", None)
    if not isinstance(name, str) or {"answer", "tests", "calls"} & set(columns):
        return
    texts = [str(row.get(name) or "") for row in rows]
    marks = {"boxed": last_boxed, "hashes": after_hashes}
    if take := next((take for take, read in marks.items() if any(map(read, texts))), ""):
        columns["answer"] = {"path": name, "take": take}
    elif name == "solution" and max(map(len, texts)) <= LONG:
        columns["answer"] = name


def _json_column(name: str, row: Row) -> str | JsonObject:
    return {"path": name, "json": True} if isinstance(row[name], str) else name


def _objects(value: object) -> bool:
    """Return whether ``value`` is a non-empty list of objects, or such a list as JSON text."""
    try:
        items = as_list(json.loads(value) if isinstance(value, str) else value)
    except (ValueError, RecursionError):
        return False
    return bool(items) and all(isinstance(item, Mapping) for item in items)


def _guess(columns: dict[str, str | JsonObject], rows: Sequence[Row], row: Row) -> list[str]:
    """Add columns for the parts that have no column yet, and return these parts.

    A column is chosen if its name is similar to the name of the part and its values have a suitable type.
    """
    guessed: list[str] = []

    def choose(part: str, fits: Callable[[object], bool]) -> bool:
        used = _used(columns)
        free = [name for name in row if name not in used and fits(row[name])]
        name = _similar(part, free)
        if not name and part == "question":
            name = max(free, key=lambda one: sum(len(str(other.get(one) or "")) for other in rows), default="")
        if name:
            columns[part] = name
            guessed.append(part)
        return bool(name)

    if not {"question", "messages"} & set(columns):
        choose("question", lambda value: isinstance(value, str))
    if "choices" not in columns:
        choose("choices", lambda value: isinstance(value, list | Mapping))
    if not {"tests", "calls"} & set(columns):
        tests = next((name for name in TESTS if name in row), "")
        if tests:
            columns["tests"] = tests
        else:
            choose("tests", lambda value: isinstance(value, str | list | Mapping) and "assert" in str(value))
    if not {"answer", "tests", "calls", "tools"} & set(columns):
        choose("answer", lambda value: isinstance(value, str | int | float) and len(str(value)) <= LONG)
    return guessed


def _used(columns: Mapping[str, str | JsonObject]) -> set[str]:
    return {name for part, value in columns.items() for name in Column.of(part, value).column_names}


def _similar(part: str, names: Sequence[str]) -> str:
    words = SIMILAR.get(part, ())
    return next((name for word in words for name in names if word in name.lower()), "")


def _add_candidate(columns: dict[str, str | JsonObject], row: Row) -> None:
    """Add the column with one recorded answer per row, if another column has the reference."""
    if "candidates" in columns or not {"answer", "tests", "calls"} & set(columns):
        return
    used = _used(columns)
    if name := next((name for name in RECORDED if isinstance(row.get(name), str) and name not in used), ""):
        columns["candidate"] = name


def _group(columns: Mapping[str, str | JsonObject], rows: Sequence[Row]) -> str:
    """Return the column of the question if questions repeat and each row has one recorded answer; "" otherwise."""
    question = columns.get("question")
    if "candidate" not in columns or not isinstance(question, str):
        return ""
    texts = [row.get(question) for row in rows]
    return question if len(set(map(str, texts))) < len(texts) else ""
