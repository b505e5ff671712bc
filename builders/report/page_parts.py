"""The data of the query browser: a small index of all queries, and their candidates in parts.

A page of 100,000 candidates stays usable because the browser unpacks only the parts it shows. ``report_page.js`` reads
the keys and the letters of this module.
"""

from __future__ import annotations

import base64
import gzip
import itertools
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NotRequired, TypedDict

from bestofn.builders.records import Row
from bestofn.builders.report.query_html import CandidateEntry, QueryEntry, is_refusal, query_entry, title_html
from bestofn.builders.tables.shards import Members

PART_QUERIES = 32  # queries per part
COLUMNS: Members = {
    "query_id": (),
    "split": (),
    "messages": (),
    "reference": (),
    "candidates": ("index", "attempt", "messages", "stop_reason", "reasoning", "usage", "error"),
    "verdicts": ("outcome", "confidence", "explanation", "verifier", "detail"),
    "scores": ("value", "parts"),
    "pairs": ("chosen", "rejected"),
}
"""The columns of the nested rows that a page shows."""


class PageEntry(QueryEntry):
    """A query of the page. ``other`` has the candidates of the second run, if the page compares two runs."""

    other: NotRequired[list[CandidateEntry]]


class IndexEntry(TypedDict):
    """One query in the list of queries, with the fields that its filters use. ``title`` is safe HTML.

    ``outcomes`` has one letter per candidate: p, f, a or e. ``flags`` may have these letters:

    - P: a candidate is in a pair. R: a candidate is a refusal.
    - D: the highest score of a fail is above the highest score of a pass.
    - U: the pass rate is higher in the second run. W: it is lower.
    """

    id: str
    split: str
    title: str
    outcomes: str
    flags: str
    other: NotRequired[str]


@dataclass
class Parts:
    """The index and the compressed parts of a page."""

    index: list[IndexEntry] = field(default_factory=list)
    packed: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, rows: Iterable[Row], other: Iterable[Row] | None = None) -> Parts:
        """Return the parts of the nested ``rows``. ``other`` has the row of the second run for each of ``rows``."""
        parts = cls()
        pairs = iter(zip(rows, other, strict=True)) if other is not None else ((row, None) for row in rows)
        while some := list(itertools.islice(pairs, PART_QUERIES)):
            parts.index += [index_entry(row, second) for row, second in some]
            parts.packed.append(packed([page_entry(row, second) for row, second in some]))
        return parts


def packed(value: object) -> str:
    """Return ``value`` as compressed JSON in base64, which the page unpacks."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), 6, mtime=0)).decode()


def page_entry(row: Row, other: Row | None = None) -> PageEntry:
    """Return the entry of one query; ``other`` is its row in the second run."""
    entry: PageEntry = {**query_entry(row)}
    if other is not None:
        entry["other"] = query_entry(other)["candidates"]
    return entry


def index_entry(row: Row, other: Row | None = None) -> IndexEntry:
    """Return the index entry of one query; ``other`` is its row in the second run."""
    entry: IndexEntry = {
        "id": row["query_id"],
        "split": row["split"],
        "title": title_html(row),
        "outcomes": _outcomes(row),
        "flags": _flags(row),
    }
    if other is not None:
        entry["other"] = _outcomes(other)
        change = _pass_rate(entry["other"]) - _pass_rate(entry["outcomes"])
        entry["flags"] += "U" if change > 0 else "W" if change < 0 else ""
    return entry


def _outcomes(row: Row) -> str:
    return "".join(verdict["outcome"][0] for verdict in row["verdicts"])


def _flags(row: Row) -> str:
    flags = "P" if row["pairs"] else ""
    flags += "R" if any(map(is_refusal, row["verdicts"])) else ""
    scores: dict[str, list[float]] = {"pass": [], "fail": []}
    for verdict, score in zip(row["verdicts"], row["scores"], strict=True):
        if score["value"] is not None and verdict["outcome"] in scores:
            scores[verdict["outcome"]].append(score["value"])
    prefers_fail = scores["pass"] and scores["fail"] and max(scores["fail"]) > max(scores["pass"])
    return flags + ("D" if prefers_fail else "")


def _pass_rate(outcomes: str) -> float:
    return outcomes.count("p") / max(len(outcomes), 1)
