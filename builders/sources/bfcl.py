"""The Berkeley Function Calling Leaderboard's own files: one JSON object a line, the keys in a file beside it.

They are read without Arrow, which would give every tool the arguments of all others, as nulls.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from bestofn.builders.errors import SourceError
from bestofn.builders.formats.tool_calls import expected_from_bfcl, from_bfcl
from bestofn.builders.records import Query, Reference


class Bfcl:
    """Single-turn queries of one file, in its order.

    ``answers`` is the file of possible answers; None: ``possible_answer/<the same name>`` beside ``path``. A category
    whose name tells that no call fits (``irrelevance``) expects none and needs no such file. Multi-turn rows, and rows
    whose key is missing, are left out and counted. ``offset`` counts rows, ``max_queries`` queries.
    """

    name = "bfcl"

    def __init__(
        self, path: str, *, answers: str | None = None, offset: int = 0, max_queries: int | None = None
    ) -> None:
        self.path = Path(path).expanduser()
        self.answers = Path(answers).expanduser() if answers else self.path.parent / "possible_answer" / self.path.name
        self.no_call = "irrelevance" in self.path.name
        self.offset, self.max_queries = offset, max_queries
        self.skipped: Counter[str] = Counter()

    def __iter__(self) -> Iterator[Query]:
        self.skipped.clear()
        keys = {} if self.no_call else {str(row["id"]): row["ground_truth"] for row in _lines(self.answers)}
        found = (query for row in islice(_lines(self.path), self.offset, None) if (query := self._query(row, keys)))
        yield from islice(found, self.max_queries)

    def _query(self, row: Mapping[str, Any], keys: Mapping[str, Any]) -> Query | None:
        turns, name = row["question"], str(row["id"])
        if len(turns) != 1:
            self.skipped["multi-turn"] += 1
            return None
        if not self.no_call and name not in keys:
            self.skipped["no possible answer"] += 1
            return None
        calls = () if self.no_call else expected_from_bfcl(keys[name])
        tools = tuple(from_bfcl(function) for function in row["function"])
        return Query(name, "tool_calling", tuple(turns[0]), tools, Reference(calls=calls), self.name)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if not path.is_file():
        raise SourceError(
            f"{path}: there is no such file. Set dataset.path to a file of BFCL, dataset.answers to its key."
        )
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise SourceError(
                    f"{path}, line {number}: not JSON ({error.msg}); expected one object a line"
                ) from error
            if not isinstance(row, dict) or "id" not in row:
                raise SourceError(f"{path}, line {number}: expected an object with an id, as BFCL publishes them")
            yield row
