"""Computes the figures of a run in one pass over its queries. Memory use hardly grows with the number of queries.

``figures_of_run`` reads a run. ``bestofn build`` (at its end), ``bestofn inspect``, ``bestofn report`` and the dataset
card print the figures. ``figures_json`` converts the figures to JSON.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bestofn.builders.analysis.audit import OpinionJson, read_figures
from bestofn.builders.analysis.candidate_totals import CandidateTotals
from bestofn.builders.analysis.pair_figures import PairFigures, pairs_of_row, pairs_of_run
from bestofn.builders.analysis.query_records import QueryRecord, record_of_nested_row, records_of_table
from bestofn.builders.records import Row
from bestofn.builders.statistics import estimators
from bestofn.builders.statistics.descriptive import Moments, share
from bestofn.builders.statistics.intervals import RESAMPLES, RunningMean
from bestofn.builders.statistics.subsets import best_of_k
from bestofn.builders.tables import candidate_table, shards

ADDED_AT_ONCE = 500  # queries
OUTCOMES = ("pass", "fail", "abstain", "error")


class Pool(NamedTuple):
    """The candidates of one query that count towards pass@k.

    ``ranks`` has one tuple (candidates, passes) per distinct reward, lowest reward first: the numbers of candidates and
    of passes with this reward. The rewards themselves are not stored. Queries with equal pools are counted together.
    """

    size: int
    passes: int
    ranks: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, candidates: Iterable[tuple[float | None, bool]]) -> Pool:
        """Build the pool. ``candidates`` has one tuple (reward or None, whether it passed) per candidate."""
        pool = list(candidates)
        ranks: list[tuple[int, int]] = []
        lower: float | None = None
        for reward, right in sorted([(reward, right) for reward, right in pool if reward is not None]):
            if reward == lower:
                size, passes = ranks[-1]
                ranks[-1] = (size + 1, passes + right)
            else:
                ranks.append((1, int(right)))
                lower = reward
        return cls(len(pool), sum([right for _, right in pool]), tuple(ranks))

    @property
    def scored(self) -> list[tuple[float, float]]:
        """One tuple per candidate with a reward: the rank of the reward, and the share of passes at this rank."""
        return [(rank, right / size) for rank, (size, right) in enumerate(self.ranks) for _ in range(size)]


class QueryKind(NamedTuple):
    """The counts of one query. They use the first draw of each candidate (``QueryRecord.draws``).

    Queries with equal counts are stored once, with the number of such queries.
    """

    split: str
    candidates: int
    passes: int
    sampled: int
    first: bool | None  # see ``QueryRecord.first_right``
    pool: Pool

    @classmethod
    def of(cls, query: QueryRecord) -> QueryKind:
        """Count the candidates of ``query``."""
        return cls(
            split=query.split,
            candidates=len(query.draws),
            passes=sum([candidate.right for candidate in query.draws]),
            sampled=len(query.sampled),
            first=query.first_right,
            pool=Pool.of([(candidate.reward, candidate.right) for candidate in query.counting]),
        )


def mix_of(query: QueryRecord) -> str:
    """Return the kind of ``query`` by the verdicts of its candidates: a key of ``analysis.problems.REMEDIES``."""
    outcomes = {candidate.outcome for candidate in query.candidates}
    if {"pass", "fail"} <= outcomes:
        return "passes and fails"
    if "pass" in outcomes:
        return "only passes"
    if "fail" in outcomes:
        return "only fails"
    if all(candidate.failure for candidate in query.candidates):
        return "no answer"
    rewards = {candidate.reward for candidate in query.candidates if candidate.reward is not None}
    return "different scores and no verdict" if len(rewards) > 1 else "no verdict of pass or fail"


def count_bounded(counts: Counter[str], text: str, most: int = 1_000) -> None:
    """Count ``text``. After ``most`` different texts, all new texts are counted together, so memory is bounded."""
    counts[text if text in counts or len(counts) < most else "other reasons"] += 1


class Rates(NamedTuple):
    """Rates of a run or of one split; a rate is None if it cannot be computed for any query."""

    queries: int
    candidates: int
    passes: int  # candidates that pass; the candidates without a verdict of pass or fail do not count in the rates
    pass_at_1: estimators.CurvePoint | None  # the first point of ``RunFigures.pass_at``
    pass_at_k: estimators.CurvePoint | None  # its last point
    best_by_reward: estimators.CurvePoint | None  # ``RunFigures.best_of`` at the k of ``pass_at_k``
    first: float | None  # share of passes among the candidates 0 with a verdict of pass or fail
    coverage: float | None  # share of queries with all n samples


@dataclass
class RunFigures:
    """The figures of one run. They cover all queries that were added with ``add``."""

    name: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)  # metadata of the candidates table
    counts: Counter[tuple[str, int, str]] = field(default_factory=Counter)  # (split, index, outcome) -> candidates
    drawn: Counter[tuple[int, str]] = field(default_factory=Counter)  # (index, outcome) -> first draws
    redrawn: Counter[str] = field(default_factory=Counter)  # such as "fail -> pass" -> regenerated candidates
    kinds: Counter[QueryKind] = field(default_factory=Counter)  # facts about a query -> number of queries
    mixes: Counter[str] = field(default_factory=Counter)  # see ``mix_of`` -> number of queries
    verification_errors: Counter[str] = field(default_factory=Counter)  # explanation -> answered candidates
    abstentions: Counter[str] = field(default_factory=Counter)  # explanation -> candidates
    disagreements: int = 0  # candidates whose strict run and plain run disagree
    tests_in_program: int = 0  # passes of tests that were compiled with the program
    totals: CandidateTotals = field(default_factory=CandidateTotals)
    scores: Moments = field(default_factory=Moments)  # the mean score of each query's samples
    best_scores: Moments = field(default_factory=Moments)  # the highest score of each query's samples
    pairs: PairFigures | None = None  # None if the run has no table of pairs
    audit: Sequence[OpinionJson] = ()  # the second opinions of ``bestofn audit``

    def add(self, query: QueryRecord) -> None:
        """Add one query to the figures."""
        self.add_all([query])

    def add_all(self, queries: Sequence[QueryRecord]) -> None:
        """Add ``queries`` to the figures. Many queries at once take less time than one after another."""
        self.totals.add([candidate for query in queries for candidate in query.candidates])
        self.totals.add_cost([attempt for query in queries for attempt in query.attempts])
        for query in queries:
            self._add(query)

    def _add(self, query: QueryRecord) -> None:
        """Add ``query`` to all figures except ``totals``."""
        self.kinds[QueryKind.of(query)] += 1
        self.drawn.update([(draw.index, draw.outcome) for draw in query.draws])
        in_use = {one.index: one for one in query.candidates}
        for draw in query.draws:
            if (now := in_use.get(draw.index)) and now.attempt != draw.attempt:
                self.redrawn[f"{draw.outcome} -> {now.outcome}"] += 1
        split, candidates = query.split, query.candidates
        self.counts.update([(split, candidate.index, candidate.outcome) for candidate in candidates])
        self.mixes[mix_of(query)] += 1
        if scores := [sample.reward for sample in query.sampled if sample.reward is not None]:
            self.scores += Moments(1, sum(scores) / len(scores))
            self.best_scores += Moments(1, max(scores))
        for candidate in candidates:
            if candidate.outcome == "error" and not candidate.failure:
                count_bounded(self.verification_errors, candidate.explanation)
            elif candidate.outcome == "abstain":
                count_bounded(self.abstentions, candidate.explanation)
        self.disagreements += sum([candidate.runs_disagree for candidate in candidates])
        self.tests_in_program += sum([candidate.tests_in_program for candidate in candidates])

    @property
    def outcomes(self) -> Counter[str]:
        """The number of candidates per outcome."""
        outcomes: Counter[str] = Counter()
        for (_, _, outcome), count in self.counts.items():
            outcomes[outcome] += count
        return outcomes

    @property
    def by_split(self) -> dict[str, Counter[str]]:
        """The number of candidates per outcome in each split; splits are sorted by name."""
        splits: dict[str, Counter[str]] = {split: Counter() for split in sorted({key[0] for key in self.counts})}
        for (split, _, outcome), count in self.counts.items():
            splits[split][outcome] += count
        return splits

    @property
    def by_index(self) -> dict[int, Counter[str]]:
        """The number of candidates per outcome for each candidate index, sorted by index. See ``QueryRecord.draws``."""
        indices: dict[int, Counter[str]] = {index: Counter() for index in sorted({key[0] for key in self.drawn})}
        for (index, outcome), count in self.drawn.items():
            indices[index][outcome] += count
        return indices

    @property
    def queries(self) -> int:
        """The number of queries."""
        return self.kinds.total()

    @property
    def candidates(self) -> int:
        """The number of candidates."""
        return self.counts.total()

    @property
    def verified(self) -> int:
        """The number of candidates that pass."""
        return self.outcomes["pass"]

    @property
    def n(self) -> int:
        """The largest number of samples per query."""
        return max((kind.sampled for kind in self.kinds), default=0)

    def pass_at(self, split: str | None = None, *, resamples: int = RESAMPLES) -> list[estimators.CurvePoint]:
        """Return pass@k for k = 1, 2, 4 …, with 95 % intervals over queries. If ``split`` is None, all splits count.

        Queries with fewer candidates than the largest k are left out. The largest k is chosen so that at least 95 % of
        the queries remain.
        """
        sizes: Counter[tuple[int, int]] = Counter()
        for pool, count in self._pools(split).items():
            sizes[pool.size, pool.passes] += count
        return estimators.pass_curve(sizes, resamples=resamples)

    def best_of(self, k: int, split: str | None = None, *, resamples: int = RESAMPLES) -> estimators.CurvePoint | None:
        """Return the accuracy of the sample with the highest reward among ``k`` samples, and its 95 % interval.

        A query counts if ``pass_at`` uses it and at least ``k`` of its candidates have a reward. The result is None if
        no query counts. For ``k`` = 1, the accuracy equals pass@1 if every candidate has a reward.
        """
        pools = self._pools(split)
        sizes: Counter[int] = Counter()
        for pool, count in pools.items():
            sizes[pool.size] += count
        largest, values = estimators.largest_k(sizes), RunningMean()
        for pool, count in pools.items():
            if pool.size >= largest and len(scored := pool.scored) >= k:
                ranks, shares = np.array(scored, np.float64).T
                values.add(float(best_of_k(ranks[None], shares[None], k)[0]), count)
        if not values.count:
            return None
        return estimators.CurvePoint(k, values.mean, *values.interval(resamples=resamples), values.count)

    def pass_rates(self) -> Counter[float]:
        """Return how many queries have each pass rate: pass rate -> number of queries."""
        rates: Counter[float] = Counter()
        for pool, count in self._pools(None).items():
            rates[pool.passes / pool.size] += count
        return rates

    def rates(self, split: str | None = None, *, resamples: int = RESAMPLES) -> Rates:
        """Return the rates of one split, or of all queries if ``split`` is None. See ``QueryRecord.draws``."""
        kinds = {kind: count for kind, count in self.kinds.items() if split in (None, kind.split)}
        curve, queries = self.pass_at(split, resamples=resamples), sum(kinds.values())
        firsts: Counter[bool] = Counter()
        for kind, count in kinds.items():
            if kind.first is not None:
                firsts[kind.first] += count
        return Rates(
            queries=queries,
            candidates=sum(count * kind.candidates for kind, count in kinds.items()),
            passes=sum(count * kind.passes for kind, count in kinds.items()),
            pass_at_1=curve[0] if curve else None,
            pass_at_k=curve[-1] if curve else None,
            best_by_reward=self.best_of(curve[-1].k, split, resamples=resamples) if curve else None,
            first=share(firsts[True], firsts.total()),
            coverage=share(sum(count for kind, count in kinds.items() if kind.sampled == self.n), queries),
        )

    def _pools(self, split: str | None) -> Counter[Pool]:
        """Count the queries of each pool: pool -> number of queries. Empty pools are omitted."""
        pools: Counter[Pool] = Counter()
        for kind, count in self.kinds.items():
            if kind.pool.size and split in (None, kind.split):
                pools[kind.pool] += count
        return pools


def figures_of_run(run: Path, manifest: Row | None = None) -> RunFigures:
    """Return the figures of ``run``, which is a run folder or a Parquet file of candidates.

    If ``manifest`` shows that the run is unfinished, the finished shards are read, because the tables are written last.
    Otherwise the candidates table is read. Raises ``SourceError`` if this table does not exist.
    """
    if manifest is not None and manifest.get("state") != "complete":
        return _figures_of_shards(run)
    table = candidate_table.read(run)
    figures = RunFigures(table.name, table.metadata, pairs=pairs_of_run(run), audit=read_figures(run))
    records = records_of_table(table)
    while block := list(itertools.islice(records, ADDED_AT_ONCE)):
        figures.add_all(block)
    return figures


def _figures_of_shards(run: Path) -> RunFigures:
    figures = RunFigures(run.name, pairs=(pairs := PairFigures()))
    for row in shards.nested(shards.parts_of(run)):
        if query := record_of_nested_row(row):
            figures.add(query)
        pairs.add(pairs_of_row(row))
    return figures
