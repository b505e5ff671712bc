"""Best-of-N analysis of one run: how the accuracy grows with k, and whether the reward selects a correct candidate.

``bestofn analyze`` prints and plots the analysis. Unbiased estimators compute the results for every k up to n from
the n candidates of each query, so no new samples are needed. Confidence intervals come from a bootstrap over queries.
The run is read twice. The first pass finds the largest k and computes all figures except the curves. The second pass
computes the curves.
"""

from __future__ import annotations

import heapq
import itertools
import math
from array import array
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

import numpy as np

from bestofn.builders.analysis.curves import Curve, Curves, CurvesOverK
from bestofn.builders.analysis.pools import QUERIES_AT_ONCE
from bestofn.builders.analysis.query_records import CandidateRecord, QueryRecord, query_records
from bestofn.builders.analysis.score_curves import ScoreAnalysis, ScoreCurves, gold_scores, scored_samples
from bestofn.builders.errors import SourceError
from bestofn.builders.statistics import estimators, intervals
from bestofn.builders.statistics.proportions import mcnemar


class SweepStep(TypedDict):
    """One point of the accuracy curve: the results with ``k`` samples per query.

    ``share`` is the accuracy, from 0 to 1. ``gain`` is the increase of the accuracy since the previous step, divided by
    the number of additional samples. ``seconds`` is the time to sample ``k`` candidates one after another.
    """

    k: int
    share: float
    gain: float | None
    reward: float | None
    seconds: float | None


class OverOptimization(TypedDict):
    """Shows whether more samples over-optimize the reward (Gao et al. 2022).

    The accuracy at k is that of the sample with the highest reward among k samples. ``peak_truth`` is the highest
    accuracy, reached at ``peak_k``. ``last_truth`` is the accuracy at the largest k. ``hacked`` is true if the whole
    confidence interval at the largest k is below ``peak_truth``. ``reward_gain`` is the increase of the mean reward
    from the smallest to the largest k.
    """

    peak_k: int
    peak_truth: float
    last_truth: float
    reward_gain: float
    hacked: bool


class GreedyComparison(TypedDict):
    """Compares the greedy candidate with the best sample by reward, on the same queries.

    ``wins`` counts the queries in which only the best sample is correct. ``losses`` counts the queries in which only
    the greedy candidate is correct. ``p`` is the p-value of McNemar's exact test of wins and losses. ``overhead`` is
    the time of all samples divided by the time of the greedy candidate.
    """

    queries: int
    greedy: float
    best_by_reward: float
    improvement: float
    interval: list[float]
    wins: int
    losses: int
    p: float
    greedy_seconds: float
    best_of_n_seconds: float
    overhead: float | None


class RewardAccuracy(TypedDict):
    """How often the reward ranks a pass above a fail, and how strongly it correlates with the length of the answer.

    ``auc``: all pairs of a pass and a fail of the same query are compared. The value is the share of pairs in which the
    pass has the higher reward; a tie counts half.
    """

    auc: float | None
    pairs: int
    length_correlation: float


class Disagreement(TypedDict):
    """A query in which the candidate with the highest reward does not pass, but another candidate passes."""

    query_id: str
    split: str
    rewarded: int  # index of the candidate with the highest reward
    verified: int  # index of the passing candidate with the highest reward
    gap: float  # difference between the two rewards
    explanation: str  # explanation of the verdict on the candidate ``rewarded``


class BestOfN(TypedDict):
    """The complete analysis; all values can be written as JSON."""

    run: str
    queries: int
    largest_k: int  # at least 95 % of the queries have this number of candidates with a verdict, or with a score
    left_out: list[int]  # requested values of k above ``largest_k``
    curves: Curves
    sweep: list[SweepStep]
    knee: dict[str, float | None]
    greedy: GreedyComparison | None
    reward: RewardAccuracy | None
    over_optimisation: OverOptimization | None
    disagreements: list[Disagreement]
    scores: ScoreAnalysis | None


def analyze(
    path: Path,
    *,
    resamples: int = intervals.RESAMPLES,
    seed: int = 0,
    read: int = 20,
    ks: Sequence[int] = (),
    gold: Path | None = None,
) -> BestOfN:
    """Return the analysis of the run at ``path``.

    ``read`` is the maximum number of disagreements. The disagreements with the largest reward gaps are returned.
    ``ks`` are the values of k; empty means powers of two. ``gold`` is a run of the same candidates with another reward.

    Raises ``SourceError`` if ``path`` has no candidates table, or if ``gold`` has no scores of its candidates.
    """
    sizes: Counter[int] = Counter()  # candidates per query that count towards pass@k -> number of queries
    scored: Counter[int] = Counter()  # samples per query with a score -> number of queries
    greedy, reward, disagreements = _GreedyPass(), _RewardPass(), _Disagreements(read)
    for query in query_records(path):
        sizes[len(query.counting)] += 1
        scored[len(scored_samples(query))] += 1
        greedy.add(query)
        reward.add(query)
        disagreements.add(query)
    over_k = CurvesOverK(sizes, ks, seed=seed)
    by_score = ScoreCurves(scored, ks, gold=gold_scores(query_records(gold)) if gold else None, seed=seed)
    if over_k.ks or by_score.ks:
        queries = query_records(path)
        while batch := list(itertools.islice(queries, QUERIES_AT_ONCE)):
            over_k.add(batch)
            by_score.add(batch)
    curves, scores = over_k.to_json(resamples=resamples), by_score.to_json(resamples=resamples)
    if gold and not (scores and scores["gold"]):
        raise SourceError(
            f"no query has a score for every sample both in {path} and in {gold}. Expected two runs of the same "
            "candidates with different rewards."
        )
    return {
        "run": path.name,
        "queries": sizes.total(),
        "largest_k": (largest := max(over_k.largest, by_score.largest)),
        "left_out": sorted({k for k in ks if k > largest}),
        "curves": curves,
        "sweep": sweep(curves),
        "knee": knees(curves),
        "greedy": greedy.compare(resamples=resamples, seed=seed),
        "reward": reward.accuracy(),
        "over_optimisation": over_optimization(curves),
        "disagreements": disagreements.widest(),
        "scores": scores,
    }


def sweep(curves: Curves) -> list[SweepStep]:
    """Return one step per k. The accuracy is that of the best sample by reward, or pass@k if there are no rewards."""
    lines = curves["lines"]
    right = lines.get("best_by_reward") or lines.get("pass_at_k")
    steps: list[SweepStep] = []
    for place, k in enumerate(curves["k"] if right else []):
        share = right["mean"][place] if right else 0.0
        before = steps[-1] if steps else None
        steps.append(
            {
                "k": k,
                "share": share,
                "gain": (share - before["share"]) / (k - before["k"]) if before else None,
                "reward": _mean_at(lines.get("reward_of_best"), place),
                "seconds": _mean_at(lines.get("seconds"), place),
            }
        )
    return steps


def knees(curves: Curves) -> dict[str, float | None]:
    """Return the k at the knee of each accuracy curve, by curve name. Beyond the knee, more samples help less.

    A curve without a knee has the value None (see ``estimators.knee``).
    """
    lines = curves["lines"]
    return {
        name: estimators.knee(curves["k"], lines[name]["mean"])
        for name in ("pass_at_k", "best_by_reward", "majority")
        if name in lines
    }


def over_optimization(curves: Curves) -> OverOptimization | None:
    """Compare the accuracy at the largest k with the highest accuracy; None if the run has no rewards."""
    truth, reward = curves["lines"].get("best_by_reward"), curves["lines"].get("reward_of_best")
    if truth is None or reward is None:
        return None
    peak = max(range(len(curves["k"])), key=lambda place: truth["mean"][place])
    return {
        "peak_k": curves["k"][peak],
        "peak_truth": truth["mean"][peak],
        "last_truth": truth["mean"][-1],
        "reward_gain": reward["mean"][-1] - reward["mean"][0],
        "hacked": truth["high"][-1] < truth["mean"][peak],
    }


def _mean_at(curve: Curve | None, place: int) -> float | None:
    return curve["mean"][place] if curve else None


class _GreedyPass:
    """Collects the data for ``GreedyComparison`` from the queries that have a greedy candidate.

    Candidates whose verdict is neither pass nor fail are omitted.
    """

    def __init__(self) -> None:
        self._rows = array("d")  # four per query: greedy correct, best correct, greedy seconds, seconds of all samples

    def add(self, query: QueryRecord) -> None:
        judged = [candidate for candidate in query.draws if candidate.conclusive]
        greedy = next((candidate for candidate in judged if candidate.greedy), None)
        best = _truth_of_best([candidate for candidate in judged if not candidate.greedy])
        if greedy is not None and best is not None:
            seconds = sum(candidate.seconds or 0.0 for candidate in query.sampled)
            self._rows.extend((float(greedy.right), best, greedy.seconds or 0.0, seconds))

    def compare(self, *, resamples: int, seed: int) -> GreedyComparison | None:
        """Return the comparison; None if no query has both a greedy candidate and a sample with a reward."""
        if not self._rows:
            return None
        before, after, one, all_samples = np.frombuffer(self._rows).reshape(-1, 4).T
        low, high = intervals.bootstrap_difference_interval(before, after, resamples=resamples, seed=seed)
        wins = int(((before == 0) & (after == 1)).sum())
        losses = int(((before == 1) & (after == 0)).sum())
        return {
            "queries": len(before),
            "greedy": float(before.mean()),
            "best_by_reward": float(after.mean()),
            "improvement": float((after - before).mean()),
            "interval": [low, high],
            "wins": wins,
            "losses": losses,
            "p": mcnemar(losses, wins),
            "greedy_seconds": float(one.mean()),
            "best_of_n_seconds": float(all_samples.mean()),
            "overhead": float(all_samples.mean() / one.mean()) if one.mean() else None,
        }


class _RewardPass:
    """Collects the data for ``RewardAccuracy``: correctly ranked pairs, and sums for the correlation with length."""

    def __init__(self) -> None:
        self._ordered = 0.0  # pairs in which the pass has the higher reward; a tie counts half
        self._pairs = 0
        # Sums of products of the deviations of (reward, length) from their means in the query.
        self._squares = np.zeros((2, 2))
        self._scored = 0

    def add(self, query: QueryRecord) -> None:
        scored = _scored(query)
        if not scored:
            return
        passes = [reward for reward, candidate in scored if candidate.right]
        fails = [reward for reward, candidate in scored if not candidate.right]
        self._ordered += sum((good > bad) + 0.5 * (good == bad) for good in passes for bad in fails)
        self._pairs += len(passes) * len(fails)
        table = np.array([(reward, candidate.characters or 0) for reward, candidate in scored], np.float64)
        table -= table.mean(axis=0)
        self._squares += table.T @ table
        self._scored += len(scored)

    def accuracy(self) -> RewardAccuracy | None:
        """Return the accuracy of the reward; None if the run has no rewards."""
        if not self._scored:
            return None
        spread = math.sqrt(self._squares[0, 0] * self._squares[1, 1])
        return {
            "auc": self._ordered / self._pairs if self._pairs else None,
            "pairs": self._pairs,
            "length_correlation": float(self._squares[0, 1] / spread) if spread else 0.0,
        }


class _Disagreements:
    """Keeps a limited number of disagreements: those with the largest ``gap``."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._widest: list[Disagreement] = []

    def add(self, query: QueryRecord) -> None:
        scored = [(reward, place, candidate) for place, (reward, candidate) in enumerate(_scored(query))]
        passes = [one for one in scored if one[2].right]
        if not passes:
            return
        (highest, _, rewarded), (good, _, verified) = max(scored), max(passes)
        if highest > good:
            self._widest.append(
                {
                    "query_id": query.query_id,
                    "split": query.split,
                    "rewarded": rewarded.index,
                    "verified": verified.index,
                    "gap": highest - good,
                    "explanation": rewarded.explanation,
                }
            )
            if len(self._widest) >= 2 * self._most + 100:
                self._widest = self.widest()

    def widest(self) -> list[Disagreement]:
        """Return the disagreements with the largest ``gap``, largest first."""
        return heapq.nsmallest(self._most, self._widest, key=lambda row: (-row["gap"], row["query_id"]))


def _scored(query: QueryRecord) -> list[tuple[float, CandidateRecord]]:
    """Return (reward, candidate) for each candidate that counts towards pass@k and has a reward."""
    return [(candidate.reward, candidate) for candidate in query.counting if candidate.reward is not None]


def _truth_of_best(candidates: Sequence[CandidateRecord]) -> float | None:
    """Return the share of passes among the candidates with the highest reward; None if there are no rewards."""
    scored = [(candidate.reward, candidate.right) for candidate in candidates if candidate.reward is not None]
    if not scored:
        return None
    highest = max(reward for reward, _ in scored)
    tied = [right for reward, right in scored if reward == highest]
    return sum(tied) / len(tied)
