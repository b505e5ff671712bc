"""Chooses the columns of a table with answers: the answer, its reference, and the question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bestofn.builders.api.queries import AUTO
from bestofn.builders.api.session import Item
from bestofn.builders.errors import ConfigError
from bestofn.builders.formats.nearest_match import did_you_mean
from bestofn.builders.records import Row
from bestofn.builders.sources.columns import present
from bestofn.builders.sources.usual_columns import USUAL_NAMES

ANSWERS = (
    "completion", "response", "candidate", "generation", "prediction", "model_answer", "model_output", "output",
    "completions", "responses", "candidates", "generations", "predictions",
)  # fmt: skip
"""The usual names of the column with the answers of a model."""
KINDS = {"tests": "code", "calls": "tool"}
"""Part of a query -> the kind that verifies it."""
PARTS = ("answer", "reference", "question", "choices", "tools", "entry_point")


@dataclass(frozen=True, slots=True)
class AnswerColumns:
    """The column of each part, such as the answer or the reference; "" if the table has no column for the part.

    ``kind`` is the kind of the references, if the name of their column shows it; otherwise ``auto``.
    """

    answer: str
    reference: str
    question: str = ""
    choices: str = ""
    tools: str = ""
    entry_point: str = ""
    kind: str = AUTO

    @property
    def names(self) -> list[str]:
        """The columns that are read."""
        return [name for part in PARTS if (name := getattr(self, part))]

    def items(self, row: Row, several: bool | None = None) -> tuple[list[Item], bool]:
        """Return the answers of one row, and whether the row has a list of answers.

        If ``several`` is None, a row has a list of answers if its value is a list and contains no message.
        """
        value = row.get(self.answer)
        if several is None:
            several = isinstance(value, list | tuple) and not any(isinstance(one, Mapping) for one in value)
        question = present(row.get(self.question)) or "" if self.question else ""
        more = {part: row[name] for part in PARTS[3:] if (name := getattr(self, part)) and row.get(name)}
        answers = (value or []) if several else [value]
        return [Item(one, row.get(self.reference), question, more) for one in answers], several


def answer_columns(columns: Sequence[str], given: Mapping[str, str | None]) -> AnswerColumns:
    """Return the columns to read. ``given`` maps parts to columns.

    For a part that is not in ``given``, a column with a usual name is used. Raises ``ConfigError`` if ``given``
    contains a part or a column that does not exist. Also raises ``ConfigError`` if it is unclear which column holds the
    answers or the references.
    """
    chosen = {part: name for part, name in given.items() if name}
    for part in chosen:
        if part not in PARTS:
            raise ConfigError(
                f"columns has no part {part!r}{did_you_mean(part, PARTS)} The parts are {', '.join(PARTS)}."
            )
    for part, name in chosen.items():
        if name not in columns:
            raise ConfigError(
                f"{part} is {name!r}: there is no such column{did_you_mean(name, columns)} The columns are "
                f"{', '.join(columns)}."
            )
    answer = chosen.get("answer") or _only("answer", "answers of the model", ANSWERS, columns)
    left = [name for name in columns if name != answer]
    reference, kind = _reference(left, chosen.get("reference"))
    left = [name for name in left if name != reference]
    found = {
        part: chosen.get(part) or _first(USUAL_NAMES.get(part, (part,)), left)
        for part in ("question", "choices", "tools", "entry_point")
    }
    found["question"] = found["question"] or _first(USUAL_NAMES["messages"], left)
    return AnswerColumns(answer, reference, **found, kind=kind)


def _reference(columns: Sequence[str], given: str | None) -> tuple[str, str]:
    """Return the name of the reference column, and the kind of reference that this name implies."""
    for part, kind in KINDS.items():
        name = given or _first(USUAL_NAMES[part], columns)
        if name and name in USUAL_NAMES[part]:
            return name, kind
    if given:
        return given, AUTO
    found = [name for name in USUAL_NAMES["answer"] if name in columns] or [
        name for name in ("solution",) if name in columns
    ]
    return _checked("reference", "references", found, columns), AUTO


def _only(part: str, text: str, names: Sequence[str], columns: Sequence[str]) -> str:
    return _checked(part, text, [name for name in names if name in columns], columns)


def _checked(part: str, text: str, found: Sequence[str], columns: Sequence[str]) -> str:
    """Return the only name in ``found``. Raises ``ConfigError`` if there is none or more than one."""
    if len(found) == 1:
        return found[0]
    if found:
        raise ConfigError(
            f"it is unclear which column has the {text}: {' or '.join(map(repr, found))}. Set {part}={found[0]}, or "
            "another column."
        )
    if not columns:
        raise ConfigError("the table has no rows, so there is nothing to verify")
    raise ConfigError(f"no name of a column fits the {text}. Set {part}= to one of {', '.join(columns)}.")


def _first(names: Sequence[str], columns: Sequence[str]) -> str:
    return next((name for name in names if name in columns), "")
