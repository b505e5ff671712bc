"""Reads the marks that a person exports from the report: wrong verdicts and notes, one JSON object per line.

The marked answers are not a random sample, so no rate of wrong verdicts is estimated from them. ``bestofn audit``
checks that the marks belong to the run, and stores the marks in ``audit/marks.jsonl``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bestofn.builders.analysis.audit import answer_hash
from bestofn.builders.errors import ConfigError
from bestofn.builders.records import JsonObject, Row

FILE = "marks.jsonl"
KEYS = {"query_id": str, "index": int, "answer_hash": str, "mark": str, "note": str}


@dataclass(frozen=True, slots=True)
class ReportMarks:
    """The marks that belong to answers of the run. ``others`` counts the marks that belong to other answers."""

    marks: Sequence[JsonObject]
    others: int

    @property
    def text(self) -> str:
        """A summary of the marks in sentences."""
        wrong = [mark for mark in self.marks if mark["mark"] == "wrong"]
        fails = sum(mark["outcome"] == "fail" for mark in wrong)
        verdicts = "1 verdict is" if len(wrong) == 1 else f"{len(wrong):,} verdicts are"
        answers = "1 answer has" if len(self.marks) == 1 else f"{len(self.marks):,} answers have"
        lines = [
            f"{verdicts} marked as wrong in the report, {fails:,} of them fails.",
            f"{answers} a mark or a note.",
            "These answers are not a random sample, so no rate is estimated from them.",
        ]
        if self.others:
            left = "1 mark is" if self.others == 1 else f"{self.others:,} marks are"
            lines.append(f"{left} left out: the run has a different answer or no answer at this position.")
        return "\n".join(lines)


def are_report_marks(text: str) -> bool:
    """Return whether ``text`` has the form of exported marks: its first line is a mark."""
    try:
        first = json.loads(text.lstrip().partition("\n")[0])
    except ValueError:
        return False
    return isinstance(first, dict) and KEYS.keys() <= first.keys()


def parsed_marks(text: str, path: Path) -> list[dict[str, Any]]:
    """Return the marks in ``text``, the content of ``path``. Raises ``ConfigError`` if a line is not a mark."""
    marks: list[dict[str, Any]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            mark = json.loads(line)
        except ValueError as error:
            raise ConfigError(f"line {number} of {path} is not JSON: {error}") from error
        if not isinstance(mark, dict) or not all(isinstance(mark.get(key), kind) for key, kind in KEYS.items()):
            raise ConfigError(
                f"line {number} of {path} is not a mark. Expected the keys {', '.join(KEYS)}, as the button 'Export' "
                "of the report writes them."
            )
        marks.append(mark)
    return marks


def marks_of_run(marks: Sequence[JsonObject], rows: Iterable[Row]) -> ReportMarks:
    """Return the marks about answers in the nested ``rows``, with the outcome that these answers have now.

    If an answer is marked several times, the last mark counts.
    """
    wanted = {(mark["query_id"], mark["index"]): mark for mark in marks}
    queries = {mark["query_id"] for mark in marks}
    known: list[JsonObject] = []
    for row in rows:
        if row["query_id"] not in queries:
            continue
        for candidate, verdict in zip(row["candidates"], row["verdicts"], strict=True):
            mark = wanted.get((row["query_id"], candidate["index"]))
            if mark and mark["answer_hash"] == answer_hash(candidate):
                known.append({**mark, "split": row["split"], "outcome": verdict["outcome"]})
    return ReportMarks(known, len(wanted) - len(known))
