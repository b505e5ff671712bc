"""Comparison of two runs over the queries they share: what changed, and whether chance explains it.

``bestofn compare`` prints it. Each query is reduced to one record before the runs are joined, so a query counts once,
however many candidates it has. Intervals resample queries. McNemar's test compares the first candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bestofn.builders.analysis.query_records import QueryRecord
from bestofn.builders.statistics.intervals import bootstrap_difference_interval, mcnemar

RESAMPLES = 10_000


@dataclass(frozen=True, slots=True)
class QueryOutcome:
    """One query of one run, without its greedy candidate."""

    split: str
    rate: float | None  # share of passes among the candidates that count towards pass@k; None when none counts
    any_pass: bool
    first: bool | None  # whether candidate 0 passed; None without a conclusive verdict on it
    errors: int  # verdicts of error
    tokens: float  # completion tokens per candidate

    @classmethod
    def of(cls, query: QueryRecord) -> QueryOutcome:
        """The outcome of ``query``, which has at least one sampled candidate."""
        sampled, counting = query.sampled, query.counting
        return cls(
            split=query.split,
            rate=sum(candidate.right for candidate in counting) / len(counting) if counting else None,
            any_pass=any(candidate.right for candidate in sampled),
            first=next((one.right for one in sampled if one.index == 0 and one.conclusive), None),
            errors=sum(candidate.outcome == "error" for candidate in sampled),
            tokens=sum(candidate.completion_tokens or 0 for candidate in sampled) / len(sampled),
        )


@dataclass(frozen=True, slots=True)
class Difference:
    """One measure of both runs over the same ``queries``.

    ``interval`` is the 95 % interval of ``after`` − ``before``; None without queries.
    """

    name: str
    queries: int
    before: float
    after: float
    interval: tuple[float, float] | None

    @property
    def change(self) -> float:
        """``after`` − ``before``."""
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class SplitChange:
    """One split: the queries that both runs decided, and how many of them have a higher or lower pass rate."""

    split: str
    queries: int
    improved: int
    worsened: int
    before: float  # mean pass rate
    after: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences between two runs over the queries they share."""

    shared: int
    only_before: int
    only_after: int
    differences: tuple[Difference, ...]
    splits: tuple[SplitChange, ...]
    only_first_won: int  # candidate 0 passed before and not after
    only_second_won: int
    p_value: float  # McNemar's exact test, two-sided
    errors_before: int
    errors_after: int


def outcomes_by_query(queries: Iterable[QueryRecord]) -> dict[str, QueryOutcome]:
    """Query id -> outcome; queries that have only a greedy candidate are left out."""
    return {query.query_id: QueryOutcome.of(query) for query in queries if query.sampled}


def compare(before: Mapping[str, QueryOutcome], after: Mapping[str, QueryOutcome], *, seed: int = 0) -> Comparison:
    """The comparison over the queries that both runs hold; ``seed`` of the bootstrap."""
    shared = sorted(before.keys() & after.keys())
    pairs = [(before[query], after[query]) for query in shared]
    decided = [(one, two) for one, two in pairs if one.rate is not None and two.rate is not None]
    firsts = [(one.first, two.first) for one, two in pairs if one.first is not None and two.first is not None]
    lost = sum(one and not two for one, two in firsts)
    won = sum(two and not one for one, two in firsts)
    return Comparison(
        shared=len(shared),
        only_before=len(before) - len(shared),
        only_after=len(after) - len(shared),
        differences=(
            _difference("pass rate", [(one.rate or 0.0, two.rate or 0.0) for one, two in decided], seed),
            _difference("any of N", [(one.any_pass, two.any_pass) for one, two in decided], seed),
            _difference("first candidate", firsts, seed),
            _difference("tokens per answer", [(one.tokens, two.tokens) for one, two in pairs], seed),
        ),
        splits=tuple(_split_change(name, decided) for name in sorted({one.split for one, _ in decided})),
        only_first_won=lost,
        only_second_won=won,
        p_value=mcnemar(lost, won),
        errors_before=sum(one.errors for one, _ in pairs),
        errors_after=sum(two.errors for _, two in pairs),
    )


def _difference(name: str, values: Sequence[tuple[float, float]], seed: int) -> Difference:
    count = len(values)
    if not count:
        return Difference(name, 0, 0.0, 0.0, None)
    before, after = [one for one, _ in values], [two for _, two in values]
    interval = bootstrap_difference_interval(before, after, resamples=RESAMPLES, seed=seed)
    return Difference(name, count, sum(before) / count, sum(after) / count, interval)


def _split_change(split: str, pairs: Sequence[tuple[QueryOutcome, QueryOutcome]]) -> SplitChange:
    rates = [(one.rate or 0.0, two.rate or 0.0) for one, two in pairs if one.split == split]
    return SplitChange(
        split=split,
        queries=len(rates),
        improved=sum(two > one for one, two in rates),
        worsened=sum(two < one for one, two in rates),
        before=sum(one for one, _ in rates) / len(rates),
        after=sum(two for _, two in rates) / len(rates),
    )
