"""Compares two runs over their shared queries and tests whether the differences are significant.

``bestofn compare`` prints the result. Every query has the same weight, independent of its number of candidates.
Confidence intervals come from a bootstrap over queries. McNemar's test compares the first candidates of each query.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bestofn.builders.analysis.query_records import QueryRecord
from bestofn.builders.statistics.intervals import bootstrap_difference_interval
from bestofn.builders.statistics.proportions import mcnemar

RESAMPLES = 10_000


@dataclass(frozen=True, slots=True)
class QueryOutcome:
    """The results of one query in one run; the greedy candidate is excluded."""

    split: str
    rate: float | None  # pass rate of the candidates that count towards pass@k; None if no candidate counts
    any_pass: bool
    first: bool | None  # whether candidate 0 passed; None if its verdict is neither pass nor fail
    errors: int  # number of candidates with the outcome "error"
    tokens: float  # mean number of completion tokens per candidate

    @classmethod
    def of(cls, query: QueryRecord) -> QueryOutcome:
        """Return the results of ``query``, which must have at least one sampled candidate."""
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
    """The mean of one measure in each of the two runs. Both means are over the same ``queries`` queries.

    ``interval`` is the 95 % confidence interval of ``after`` − ``before``; None if there are no queries.
    """

    name: str
    queries: int
    before: float
    after: float
    interval: tuple[float, float] | None

    @property
    def change(self) -> float:
        """The difference ``after`` − ``before``."""
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class SplitChange:
    """The change in one split. ``queries`` counts the queries that have a pass rate in both runs.

    ``improved`` and ``worsened`` count the queries whose pass rate is higher or lower in the second run.
    """

    split: str
    queries: int
    improved: int
    worsened: int
    before: float  # mean pass rate in the first run
    after: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences between two runs over their shared queries."""

    shared: int
    only_before: int
    only_after: int
    differences: tuple[Difference, ...]
    splits: tuple[SplitChange, ...]
    only_first_won: int  # queries in which candidate 0 passes only in the first run
    only_second_won: int
    p_value: float  # McNemar's exact test, two-sided
    errors_before: int
    errors_after: int


def outcomes_by_query(queries: Iterable[QueryRecord]) -> dict[str, QueryOutcome]:
    """Return the results per query id. Queries that have only a greedy candidate are omitted."""
    return {query.query_id: QueryOutcome.of(query) for query in queries if query.sampled}


def compare(before: Mapping[str, QueryOutcome], after: Mapping[str, QueryOutcome], *, seed: int = 0) -> Comparison:
    """Compare two runs over the queries that both contain. ``seed`` is the seed of the bootstrap."""
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
