"""Two runs of the same queries side by side: what changed, and whether chance would explain it.

Rows are joined on ``query_id`` after each query was brought to one figure, so a query with eight candidates counts once
and is never multiplied by the other run's eight. The interval resamples queries; McNemar's test takes the first
candidate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bestofn.builders.statistics.eligibility import CONCLUSIVE, counts_towards_pass_at_k
from bestofn.builders.statistics.intervals import bootstrap_difference_interval, mcnemar

COLUMNS = (
    "query_id", "candidate_idx", "split", "arm", "n_fixed", "is_verified", "verification_status",
    "usage_completion_tokens",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class QueryFigures:
    """One query of one run. ``rate`` is None when no verdict was conclusive.

    Samples that adaptive sampling added because of what it had found are left out of it: they would bias it.
    """

    split: str
    candidates: int
    rate: float | None  # passes among conclusive verdicts
    any_pass: bool
    first: bool | None  # whether candidate 0 passed; None when that is not known
    errors: int
    tokens: float


@dataclass(frozen=True, slots=True)
class Difference:
    """One measure in both runs over the same ``queries``; ``interval`` is of ``after`` − ``before``, in 95 of 100;
    None without queries."""

    name: str
    queries: int
    before: float
    after: float
    interval: tuple[float, float] | None

    @property
    def change(self) -> float:
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class SplitChange:
    """One split: queries both runs share, and how many of them rose or fell in their pass rate."""

    split: str
    queries: int
    improved: int
    worsened: int
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two runs say about the queries they share."""

    shared: int
    only_before: int
    only_after: int
    differences: tuple[Difference, ...]
    splits: tuple[SplitChange, ...]
    only_first_won: int  # candidate 0 passed before and not after
    only_second_won: int
    p_value: float  # exact McNemar, two-sided
    errors_before: int
    errors_after: int


def by_query(rows: Sequence[Mapping[str, Any]]) -> dict[str, QueryFigures]:
    """``query_id`` → figures, of flat candidate rows; greedy answers are left out."""
    grouped: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        if row.get("arm") != "greedy":
            grouped.setdefault(str(row["query_id"]), []).append(row)
    return {query: _figures(group) for query, group in grouped.items()}


def compared(before: Mapping[str, QueryFigures], after: Mapping[str, QueryFigures], *, seed: int = 0) -> Comparison:
    """The comparison over the queries that both hold."""
    shared = sorted(before.keys() & after.keys())
    pairs = [(before[query], after[query]) for query in shared]
    both = [(one, two) for one, two in pairs if one.rate is not None and two.rate is not None]
    firsts = [(one.first, two.first) for one, two in pairs if one.first is not None and two.first is not None]
    lost = sum(one and not two for one, two in firsts)
    won = sum(two and not one for one, two in firsts)
    return Comparison(
        shared=len(shared),
        only_before=len(before) - len(shared),
        only_after=len(after) - len(shared),
        differences=(
            _difference("pass rate", [one.rate or 0.0 for one, _ in both], [two.rate or 0.0 for _, two in both], seed),
            _difference("any of N", [one.any_pass for one, _ in both], [two.any_pass for _, two in both], seed),
            _difference("first candidate", [one for one, _ in firsts], [two for _, two in firsts], seed),
            _difference("tokens an answer", [one.tokens for one, _ in pairs], [two.tokens for _, two in pairs], seed),
        ),
        splits=tuple(_split_change(name, both) for name in sorted({one.split for one, _ in both})),
        only_first_won=lost,
        only_second_won=won,
        p_value=mcnemar(lost, won),
        errors_before=sum(one.errors for one, _ in pairs),
        errors_after=sum(two.errors for _, two in pairs),
    )


def _figures(group: Sequence[Mapping[str, Any]]) -> QueryFigures:
    judged = [row for row in group if row["verification_status"] in CONCLUSIVE]
    first = next((row for row in judged if row["candidate_idx"] == 0), None)
    counted = [
        row
        for row in group
        if counts_towards_pass_at_k(
            row["verification_status"], row.get("arm"), row["candidate_idx"], row.get("n_fixed")
        )
    ]
    return QueryFigures(
        split=str(group[0]["split"]),
        candidates=len(group),
        rate=sum(bool(row["is_verified"]) for row in counted) / len(counted) if counted else None,
        any_pass=any(row["is_verified"] for row in judged),
        first=bool(first["is_verified"]) if first else None,
        errors=sum(row["verification_status"] == "error" for row in group),
        tokens=sum(row.get("usage_completion_tokens") or 0 for row in group) / len(group),
    )


def _difference(name: str, before: Sequence[float], after: Sequence[float], seed: int) -> Difference:
    count = len(before)
    mean_before, mean_after = (sum(values) / count if count else 0.0 for values in (before, after))
    interval = bootstrap_difference_interval(before, after, resamples=10_000, seed=seed) if count else None
    return Difference(name, count, mean_before, mean_after, interval)


def _split_change(split: str, pairs: Sequence[tuple[QueryFigures, QueryFigures]]) -> SplitChange:
    rates = [(one.rate or 0.0, two.rate or 0.0) for one, two in pairs if one.split == split]
    return SplitChange(
        split,
        len(rates),
        sum(two > one for one, two in rates),
        sum(two < one for one, two in rates),
        sum(one for one, _ in rates) / len(rates),
        sum(two for _, two in rates) / len(rates),
    )
