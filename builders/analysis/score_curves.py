"""Best-of-N analysis by score alone: the mean score and the cost of the best of k samples, compared with greedy.

This analysis needs no verdicts. ``analysis.best_of_n`` adds the queries in batches. Unbiased estimators compute the
results for every k from the n scored samples of a query. Queries with fewer scored samples than the largest k are left
out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TypedDict

import numpy as np

from bestofn.builders.analysis.pools import MeansOverK, Pool, complete, over_k, pools_of
from bestofn.builders.analysis.query_records import CandidateRecord, QueryRecord
from bestofn.builders.statistics import estimators
from bestofn.builders.statistics.intervals import RunningMean
from bestofn.builders.statistics.subsets import Floats, best_of_k, expected_max, row_sums

GoldScores = Mapping[tuple[str, int], float]
"""(query id, candidate index) -> score by another reward, which measures the selection and does not select."""


class ScoreStep(TypedDict):
    """The result with ``k`` samples per query: the mean score of the best one, and its 95 % interval.

    ``gain`` is the increase since the previous step, divided by the number of additional samples. ``seconds`` and
    ``usd`` are the time and the cost of ``k`` samples of one query. ``gold`` is the mean gold score of the sample that
    the reward selects. A value is None if it is not known.
    """

    k: int
    score: float
    low: float
    high: float
    gain: float | None
    seconds: float | None
    usd: float | None
    gold: float | None


class GreedyScores(TypedDict):
    """Compares the greedy candidate with the best of ``k`` samples by score, on the same queries.

    ``win``, ``tie`` and ``loss`` are the shares of the queries in which the best sample has a higher, an equal or a
    lower score. ``overhead`` is the time of the samples divided by the time of the greedy candidate.
    """

    k: int
    queries: int
    greedy: float
    best: float
    improvement: float
    interval: list[float]
    win: float
    tie: float
    loss: float
    overhead: float | None


class GoldCurve(TypedDict):
    """Compares the selecting reward (proxy) with another reward (gold) over k (Gao et al. 2022).

    ``hacked`` is true if the whole 95 % interval of the gold score at the largest k is below ``peak``.
    """

    peak_k: int
    peak: float
    last: float
    hacked: bool


class ScoreAnalysis(TypedDict):
    """The analysis by score. ``queries`` is the number of queries with enough scored samples for the largest k.

    ``left_out`` is the number of queries with fewer scored samples.
    """

    queries: int
    left_out: int
    steps: list[ScoreStep]
    knee: float | None
    greedy: list[GreedyScores]
    gold: GoldCurve | None


class ScoreCurves:
    """Accumulates the analysis by score over queries.

    ``sizes`` counts the queries by their number of scored samples. ``wanted`` are the values of k; empty means powers
    of two. Values above the largest k are left out.
    """

    def __init__(
        self, sizes: Mapping[int, int], wanted: Sequence[int] = (), *, gold: GoldScores | None = None, seed: int = 0
    ) -> None:
        self.largest = estimators.largest_k(sizes)
        self.ks = estimators.steps_up_to(self.largest, wanted)
        self._all_queries = sum(sizes.values())
        self._gold, self._seed = gold or {}, seed
        self._adding = MeansOverK(self.ks, seed)
        self._means: dict[tuple[str, int], RunningMean] = {}

    def add(self, queries: Sequence[QueryRecord]) -> None:
        """Add ``queries``. Those with fewer scored samples than the largest k are ignored."""
        used = [(query, pool) for query in queries if len(pool := scored_samples(query)) >= max(self.largest, 1)]
        parts = pools_of([pool for _, pool in used])
        self._adding.add(
            len(used), ((pool.places, self._values([used[place][0] for place in pool.places], pool)) for pool in parts)
        )

    def to_json(self, *, resamples: int) -> ScoreAnalysis | None:
        """Return the analysis; None if no sample has a score."""
        self._means = {
            (name, k): mean
            for name, line in self._adding.lines().items()
            for k, mean in zip(self.ks, line, strict=True)
        }
        if not self._means:
            return None
        steps = list(self._steps(resamples))
        queries = self._means["score", self.ks[0]].count
        return {
            "queries": queries,
            "left_out": self._all_queries - queries,
            "steps": steps,
            "knee": estimators.knee([step["k"] for step in steps], [step["score"] for step in steps]),
            "greedy": [found for k in self.ks if (found := self._greedy(k, resamples))],
            "gold": self._gold_curve(resamples),
        }

    def _values(self, queries: Sequence[QueryRecord], pool: Pool) -> dict[str, Floats]:
        """Return the values of the ``queries`` of ``pool`` by name (queries × values of k). An unknown value is NaN."""
        ks, rewards = self.ks, pool.numbers(lambda one: one.reward)
        n, everywhere = rewards.shape[1], np.ones(len(rewards), bool)
        gold = np.array(
            [
                [self._gold.get((query.query_id, one.index), math.nan) for one in samples]
                for query, samples in zip(queries, pool.queries, strict=True)
            ]
        )
        seconds, usd = pool.numbers(lambda one: one.seconds), pool.numbers(_usd)
        greedy = [
            next((one for one in query.draws if one.greedy and one.reward is not None), None) for query in queries
        ]
        return {
            "score": over_k(ks, everywhere, lambda k: expected_max(rewards, k)),
            "seconds": over_k(ks, complete(seconds), lambda k: k * row_sums(seconds) / n),
            "usd": over_k(ks, complete(usd), lambda k: k * row_sums(usd) / n),
            "gold": over_k(ks, complete(gold), lambda k: best_of_k(rewards, gold, k)),
            **_against_greedy(greedy, rewards, seconds, ks),
        }

    def _steps(self, resamples: int) -> Iterator[ScoreStep]:
        before: tuple[int, float] | None = None
        for k in self.ks:
            line = self._means["score", k]
            low, high = line.interval(resamples=resamples, seed=self._seed)
            yield {
                "k": k,
                "score": line.mean,
                "low": low,
                "high": high,
                "gain": (line.mean - before[1]) / (k - before[0]) if before else None,
                "seconds": self._mean("seconds", k),
                "usd": self._mean("usd", k),
                "gold": self._mean("gold", k),
            }
            before = k, line.mean

    def _greedy(self, k: int, resamples: int) -> GreedyScores | None:
        improvement = self._means.get(("improvement", k))
        if improvement is None:
            return None
        greedy, win, tie = (self._means[name, k].mean for name in ("greedy", "win", "tie"))
        one, several = self._mean("greedy_seconds", k), self._mean("seconds_beside_greedy", k)
        return {
            "k": k,
            "queries": improvement.count,
            "greedy": greedy,
            "best": greedy + improvement.mean,
            "improvement": improvement.mean,
            "interval": list(improvement.interval(resamples=resamples, seed=self._seed)),
            "win": win,
            "tie": tie,
            "loss": 1.0 - win - tie,
            "overhead": several / one if one and several is not None else None,
        }

    def _gold_curve(self, resamples: int) -> GoldCurve | None:
        lines = [self._means.get(("gold", k)) for k in self.ks]
        known = [line for line in lines if line is not None]
        if not known or len(known) < len(lines):
            return None
        means = [line.mean for line in known]
        peak = max(range(len(means)), key=lambda place: means[place])
        high = known[-1].interval(resamples=resamples, seed=self._seed)[1]
        return {"peak_k": self.ks[peak], "peak": means[peak], "last": means[-1], "hacked": high < means[peak]}

    def _mean(self, name: str, k: int) -> float | None:
        line = self._means.get((name, k))
        return line.mean if line else None


def scored_samples(query: QueryRecord) -> list[CandidateRecord]:
    """Return the samples of ``query`` that have a score. Samples that depend on an earlier verdict are left out."""
    return [one for one in query.draws if one.independent and one.reward is not None]


def gold_scores(queries: Iterator[QueryRecord]) -> dict[tuple[str, int], float]:
    """Return {(query id, candidate index): score} for a run of the same candidates with another reward."""
    return {
        (query.query_id, one.index): one.reward for query in queries for one in query.draws if one.reward is not None
    }


def _usd(one: CandidateRecord) -> float | None:
    return None if one.cost_usd is None else one.cost_usd + (one.judging_usd or 0.0)


def _against_greedy(
    greedy: Sequence[CandidateRecord | None], rewards: Floats, seconds: Floats, ks: Sequence[int]
) -> dict[str, Floats]:
    """Return the values of ``GreedyScores``; ``greedy`` has the scored greedy candidate of each query."""
    rows = np.array([one is not None for one in greedy])
    score = np.array([one.reward if one else math.nan for one in greedy], np.float64)
    alone = np.array([one.seconds or math.nan if one else math.nan for one in greedy], np.float64)
    timed = complete(np.column_stack([alone, seconds]))
    higher, equal = (rewards > score[:, None]).astype(np.float64), (rewards == score[:, None]).astype(np.float64)
    return {
        "greedy": over_k(ks, rows, lambda k: score),
        "improvement": over_k(ks, rows, lambda k: expected_max(rewards, k) - score),
        "win": over_k(ks, rows, lambda k: best_of_k(rewards, higher, k)),
        "tie": over_k(ks, rows, lambda k: best_of_k(rewards, equal, k)),
        "greedy_seconds": over_k(ks, timed, lambda k: alone),
        "seconds_beside_greedy": over_k(ks, timed, lambda k: k * row_sums(seconds) / rewards.shape[1]),
    }
