"""Verifies the answers of a chunk of rows, and adds the verdicts as columns. The code runs in worker processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bestofn.builders.api.answer_tables import TYPES, Chunk
from bestofn.builders.api.columns import AnswerColumns
from bestofn.builders.api.session import Item
from bestofn.builders.records import Verdict


@dataclass(frozen=True, slots=True)
class Encoded:
    """Encoded rows with their verdict columns, and how many answers have each outcome."""

    data: bytes
    outcomes: Mapping[str, int]


def items_of(chunk: Chunk, columns: AnswerColumns) -> list[tuple[list[Item], bool]]:
    """Return the answers of each row, and whether the row has a list of answers."""
    several = chunk.has_lists(columns.answer)
    return [columns.items(row, several) for row in chunk.rows(columns.names)]


def with_verdicts(
    chunk: Chunk, columns: AnswerColumns, verify: Callable[[Sequence[Item]], Sequence[Verdict]]
) -> Encoded:
    """Verify all answers of ``chunk`` with one call of ``verify``, and return the rows with verdict columns."""
    rows = items_of(chunk, columns)
    verdicts = verify([item for items, _ in rows for item in items])
    rest = iter(verdicts)
    cells = [([_cells(next(rest)) for _ in items], several) for items, several in rows]
    values = {
        name: [[one[place] for one in row] if several else row[0][place] for row, several in cells]
        for place, name in enumerate(TYPES)
    }
    return Encoded(chunk.encoded(values), Counter(verdict.outcome for verdict in verdicts))


def _cells(verdict: Verdict) -> tuple[object, ...]:
    """Return the fields of one verdict, one per verdict column, in the order of ``TYPES``."""
    explanation = verdict.explanation.encode("utf-8", "replace").decode()
    return verdict.outcome == "pass", verdict.outcome, verdict.confidence, explanation, verdict.verifier
