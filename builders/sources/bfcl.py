"""Reads the Berkeley Function Calling Leaderboard (BFCL): one JSON object per line, with answers in another file.

``conf/dataset/bfcl.yaml`` uses it. The files are not read with Arrow. Arrow would give every tool the arguments of all
other tools, with null values.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from bestofn.builders.errors import SourceError
from bestofn.builders.formats.tool_calls import expected_from_bfcl, from_bfcl
from bestofn.builders.records import Count, JsonObject, PositiveCount, Query, Reference


class Bfcl:
    """The single-turn queries of one BFCL file, in the order of the file.

    ``answers`` is the file of possible answers; by default ``possible_answer/<same name>`` in the folder of
    ``path``. If the file name contains ``irrelevance``, the correct response calls no tool, and the file of possible
    answers is not read. ``skipped`` counts the multi-turn rows and the rows without a possible answer. ``offset`` is
    the number of rows to skip. ``max_queries`` limits the number of queries.
    """

    name = "bfcl"

    def __init__(
        self,
        path: str,
        *,
        answers: str | None = None,
        offset: Count = 0,
        max_queries: PositiveCount | None = None,
        license: str = "",
    ) -> None:
        self.license = license
        self.path = Path(path).expanduser()
        self.answers = Path(answers).expanduser() if answers else self.path.parent / "possible_answer" / self.path.name
        self.no_call = "irrelevance" in self.path.name
        self.offset, self.max_queries = offset, max_queries
        self.skipped: Counter[str] = Counter()

    def __iter__(self) -> Iterator[Query]:
        self.skipped.clear()
        answers = {} if self.no_call else {str(row["id"]): row["ground_truth"] for row in _rows(self.answers)}
        queries = (self._query(row, answers) for row in islice(_rows(self.path), self.offset, None))
        yield from islice((query for query in queries if query), self.max_queries)

    def _query(self, row: JsonObject, answers: Mapping[str, Sequence[JsonObject]]) -> Query | None:
        turns, row_id = row["question"], str(row["id"])
        if len(turns) != 1:
            self.skipped["multi-turn"] += 1
            return None
        if not self.no_call and row_id not in answers:
            self.skipped["no possible answer"] += 1
            return None
        calls = () if self.no_call else expected_from_bfcl(answers[row_id])
        tools = tuple(from_bfcl(function) for function in row["function"])
        return Query(row_id, "tool_calling", tuple(turns[0]), tools, Reference(calls=calls), self.name)


def _rows(path: Path) -> Iterator[JsonObject]:
    """Yield the objects in ``path``. Raises ``SourceError`` with the line number if a line is not a BFCL object."""
    if not path.is_file():
        raise SourceError(
            f"{path}: there is no such file. Set dataset.path to a file of BFCL and dataset.answers to the file of its "
            "possible answers."
        )
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield _row(path, number, line)


def _row(path: Path, number: int, line: str) -> JsonObject:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise SourceError(f"{path}, line {number}: not JSON ({error.msg}); expected one object per line") from error
    if not isinstance(row, dict) or "id" not in row:
        raise SourceError(f"{path}, line {number}: expected a BFCL object with an id")
    return row
