"""Verifies the answers of a chunk of rows, and adds the verdicts as columns. The code runs in worker processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bestofn.builders.api.answer_tables import TYPES, Chunk
from bestofn.builders.api.columns import read_responses
from bestofn.builders.api.session import Read
from bestofn.builders.records import Verdict
from bestofn.builders.sources.row_reader import RowReader


@dataclass(frozen=True, slots=True)
class Encoded:
    """Encoded rows with their verdict columns, and how many answers have each outcome."""

    data: bytes
    outcomes: Mapping[str, int]


def responses_of(chunk: Chunk, reader: RowReader) -> list[tuple[list[Read], bool]]:
    """Return the responses of each row, and whether the row has a list of responses."""
    return [read_responses(reader, row) for row in chunk.rows(reader.names)]


def with_verdicts(chunk: Chunk, reader: RowReader, verify: Callable[[Sequence[Read]], Sequence[Verdict]]) -> Encoded:
    """Verify all responses of ``chunk`` with one call of ``verify``, and return the rows with verdict columns."""
    rows = responses_of(chunk, reader)
    verdicts = verify([one for read, _ in rows for one in read])
    rest = iter(verdicts)
    cells = [([_cells(next(rest)) for _ in read], several) for read, several in rows]
    values = {
        name: [[one[place] for one in row] if several else row[0][place] for row, several in cells]
        for place, name in enumerate(TYPES)
    }
    return Encoded(chunk.encoded(values), Counter(verdict.outcome for verdict in verdicts))


def _cells(verdict: Verdict) -> tuple[object, ...]:
    """Return the fields of one verdict, one per verdict column, in the order of ``TYPES``."""
    explanation = verdict.explanation.encode("utf-8", "replace").decode()
    return verdict.outcome == "pass", verdict.outcome, verdict.confidence, explanation, verdict.verifier
