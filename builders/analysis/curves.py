"""Computes the curves of a best-of-N analysis of one run: accuracy, reward and time for each number of samples k.

``analysis.best_of_n`` adds the queries in batches. Queries with fewer candidates than the largest k are left out.
The largest k is chosen so that at least 95 % of the queries remain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

import numpy as np

from bestofn.builders.analysis.pools import Flags, MeansOverK, Pool, complete, over_k, pools_of
from bestofn.builders.analysis.query_records import QueryRecord
from bestofn.builders.statistics import estimators
from bestofn.builders.statistics.intervals import RunningMean
from bestofn.builders.statistics.subsets import Floats, Integers, best_of_k, expected_max, majority_at_k, row_sums

MAJORITY_RESAMPLES = 100  # random subsets per query and k


class Curve(TypedDict):
    """The mean at each k, and the two ends of its 95 % interval (``low``, ``high``)."""

    mean: list[float]
    low: list[float]
    high: list[float]


class Curves(TypedDict):
    """All curves. Each curve is computed over the same queries; ``queries`` is the number of queries.

    If the best of k samples by reward is selected, the distribution of answers differs from that of the model.
    ``kl_bound`` is an upper bound of the KL divergence between these two distributions, in nats. The curve
    ``kl_estimate`` estimates the KL divergence from the distinct answers. The probability of an answer is the share of
    candidates that give it.
    """

    queries: int
    k: list[int]
    kl_bound: list[float]
    lines: dict[str, Curve]


class CurvesOverK:
    """Accumulates the curves over queries.

    ``sizes`` counts the queries by their number of candidates that count towards pass@k: ``{8: 100}`` means that 100
    queries have 8 such candidates. ``wanted`` are the values of k; empty means powers of two.
    """

    def __init__(self, sizes: Mapping[int, int], wanted: Sequence[int] = (), *, seed: int = 0) -> None:
        self.largest = estimators.largest_k(sizes)
        self.ks = estimators.steps_up_to(self.largest, wanted)
        self.queries = sum(count for size, count in sizes.items() if size >= self.largest) if self.largest else 0
        self._seed = seed
        self._means = MeansOverK(self.ks, seed)

    def add(self, queries: Sequence[QueryRecord]) -> None:
        """Add ``queries``. Those with fewer candidates than the largest k are ignored."""
        used = [counting for query in queries if self.ks and len(counting := query.counting) >= self.largest]
        self._means.add(
            len(used), ((pool.places, curves_of_pool(pool, self.ks, self._seed)) for pool in pools_of(used))
        )

    def to_json(self, *, resamples: int) -> Curves:
        """Return the curves that could be computed for every query."""
        lines = {
            name: _curve(line, resamples, self._seed)
            for name, line in self._means.lines().items()
            if line[0].count == self.queries
        }
        return {
            "queries": self.queries,
            "k": self.ks,
            "kl_bound": [estimators.kl_bound(k) for k in self.ks],
            "lines": lines,
        }


def curves_of_pool(pool: Pool, ks: Sequence[int], seed: int) -> dict[str, Floats]:
    """Return the tables (queries × values of k) of all curves, by name.

    A row is NaN if a candidate of its query lacks the data.
    """
    right = pool.numbers(lambda one: one.right)
    rewards, seconds = pool.numbers(lambda one: one.reward), pool.numbers(lambda one: one.seconds)
    scored, n, passes = complete(rewards), right.shape[1], right.sum(axis=1).astype(int)
    return {
        "pass_at_k": np.array([[estimators.pass_at_k(n, c, k) for k in ks] for c in range(n + 1)])[passes],
        "pass_hat_k": np.array([[estimators.pass_hat_k(n, c, k) for k in ks] for c in range(n + 1)])[passes],
        "seconds": over_k(ks, complete(seconds), lambda k: k * row_sums(seconds) / n),
        "best_by_reward": over_k(ks, scored, lambda k: best_of_k(rewards, right, k)),
        "reward_of_best": over_k(ks, scored, lambda k: expected_max(rewards, k)),
        **_curves_by_answer(pool, right.astype(bool), rewards, ks, seed),
    }


def _curves_by_answer(pool: Pool, right: Flags, rewards: Floats, ks: Sequence[int], seed: int) -> dict[str, Floats]:
    """Return the curves that need the answer of each candidate."""
    answers, known = pool.answers()
    scored = known & complete(rewards)

    def majority(votes: Floats, k: int) -> Floats:
        return majority_at_k(answers, right, k, votes, resamples=MAJORITY_RESAMPLES, seed=seed)

    return {
        "kl_estimate": over_k(ks, scored, lambda k: best_of_k(rewards, _divergences(answers, k), k)),
        "majority": over_k(ks, known, lambda k: majority(np.ones(right.shape), k)),
        "weighted_majority": over_k(ks, scored, lambda k: majority(1.0 / (1.0 + np.exp(-rewards)), k)),
    }


def _divergences(answers: Integers, k: int) -> Floats:
    """Return the KL divergence (nats) for best-of-``k``, as estimated from each candidate's answer.

    The probability of an answer is the share of the candidates that give it.
    """
    n = answers.shape[1]
    sizes = (answers[:, :, None] == answers[:, None, :]).sum(axis=2)
    return np.array([estimators.kl_estimate(k, size / n) for size in range(1, n + 1)])[sizes - 1]


def _curve(line: Sequence[RunningMean], resamples: int, seed: int) -> Curve:
    bounds = [values.interval(resamples=resamples, seed=seed) for values in line]
    return {
        "mean": [values.mean for values in line],
        "low": [low for low, _ in bounds],
        "high": [high for _, high in bounds],
    }
