"""Best-of-N analysis of one run: how accuracy and score grow with k, and whether the reward selects a correct answer.

``bestofn analyze`` prints and plots the analysis. Unbiased estimators compute the results for every k up to n from
the n candidates of each query, so no new samples are needed. Confidence intervals come from a bootstrap over queries.
The curves by verdict leave out the queries that pass@k leaves out in the other figures of the run. The curves by score
need no verdict, so runs of open questions have them too.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypedDict

import numpy as np

from bestofn.builders.analysis.candidates import Block, Draws, Flags, blocks_of_run
from bestofn.builders.errors import SourceError
from bestofn.builders.statistics import estimators, intervals
from bestofn.builders.statistics.proportions import mcnemar
from bestofn.builders.statistics.subsets import Floats, Integers, best_of_k, expected_max, majority_at_k, row_sums

MAJORITY_RESAMPLES = 100  # random subsets per query and k
QUERIES_AT_ONCE = 512


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


GoldScores = Mapping[tuple[int, int], float]
"""(place of the query, candidate index) -> score by another reward, which measures the selection."""


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
    ids: list[str] = []
    parts: list[Draws] = []
    reward, disagreements = _RewardPass(), _Disagreements(read)
    for block in blocks_of_run(path):
        draws = block.draws
        for scored in _by_query(draws.where(draws.counts & ~np.isnan(draws.reward))):
            reward.add(scored)
            disagreements.add(scored, block)
        parts.append(replace(draws, query=draws.query + len(ids)))
        ids += block.ids
    draws = Draws.joined(parts)
    over_k = _by_verdict(draws, ks, resamples, seed)
    by_score = _by_score(draws, ks, _gold_scores(gold, ids) if gold else {}, resamples, seed)
    scores = by_score.analysis
    if gold and not (scores and scores["gold"]):
        raise SourceError(
            f"no query has a score for every sample both in {path} and in {gold}. Expected two runs of the same "
            "candidates with different rewards."
        )
    return {
        "run": path.name,
        "queries": len(ids),
        "largest_k": (largest := max(over_k.largest, by_score.largest)),
        "left_out": sorted({k for k in ks if k > largest}),
        "curves": over_k.curves,
        "sweep": sweep(over_k.curves),
        "knee": knees(over_k.curves),
        "greedy": _greedy_comparison(draws, resamples, seed),
        "reward": reward.accuracy(),
        "over_optimisation": over_optimization(over_k.curves),
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


# tables of queries and candidates ----------------------------------------------------------------------------------


class _Pool(NamedTuple):
    """Queries with the same number of draws: the places of the queries, and their draws one after another."""

    queries: Integers
    draws: Draws

    def table(self, values: Floats | Flags | Integers) -> Floats:
        """Return ``values``, one per draw, as a table (queries × draws)."""
        return values.reshape(len(self.queries), -1).astype(np.float64)

    def answers(self) -> tuple[Integers, Flags]:
        """Return a number for the answer of each candidate, and per query whether all its answers are known.

        Answers of a query are numbered in order of their first occurrence: a, b, a, c → 0, 1, 0, 2.
        """
        answers = self.draws.answer.reshape(len(self.queries), -1)
        first = (answers[:, :, None] == answers[:, None, :]).argmax(axis=2)
        is_new = first == np.arange(answers.shape[1])
        return np.take_along_axis(np.cumsum(is_new, axis=1) - 1, first, axis=1), (answers != 0).all(axis=1)


def _pools(draws: Draws, least: int) -> Iterator[_Pool]:
    """Yield the queries with at least ``least`` of ``draws``, at most ``QUERIES_AT_ONCE`` at a time."""
    sizes = np.bincount(draws.query)
    starts = np.cumsum(sizes) - sizes
    for size in sorted(set(sizes[sizes >= max(least, 1)].tolist())):
        queries = np.flatnonzero(sizes == size)
        for start in range(0, len(queries), QUERIES_AT_ONCE):
            some = queries[start : start + QUERIES_AT_ONCE]
            yield _Pool(some, draws.where((starts[some][:, None] + np.arange(size)).ravel()))


def _by_query(draws: Draws) -> Iterator[Draws]:
    """Yield the draws of each query."""
    starts = np.flatnonzero(np.diff(draws.query, prepend=-1, append=-1)).tolist()
    for start, end in itertools.pairwise(starts):
        yield draws.where(slice(start, end))


def _largest_k(draws: Draws) -> int:
    return estimators.largest_k(Counter(np.bincount(draws.query).tolist()))


def _complete(table: Floats) -> Flags:
    """Return one flag per row of ``table``: whether the row has no NaN."""
    return np.logical_not(np.isnan(table).any(axis=1))


def _over_k(ks: Sequence[int], rows: Flags, values: Callable[[int], Floats]) -> Floats:
    """Return a table (queries × values of k). The column of ``k`` is ``values(k)``.

    Rows whose flag in ``rows`` is False are NaN.
    """
    if not rows.any():
        return np.full((len(rows), len(ks)), np.nan)
    return np.where(rows[:, None], np.stack([values(k) for k in ks], axis=1), np.nan)


def _joined(tables: Sequence[Mapping[str, Floats]]) -> dict[str, Floats]:
    """Return {name: table of all queries}, without the rows of unknown values and without empty tables."""
    joined = {name: np.concatenate([one[name] for one in tables]) for name in (tables[0] if tables else ())}
    known = {name: table[_complete(table)] for name, table in joined.items()}
    return {name: table for name, table in known.items() if len(table)}


def _interval(values: Floats, resamples: int, seed: int) -> tuple[float, float]:
    return intervals.bootstrap_mean_interval(values.tolist(), resamples=resamples, seed=seed)


# curves by verdict --------------------------------------------------------------------------------------------------


class _ByVerdict(NamedTuple):
    largest: int
    curves: Curves


def _by_verdict(draws: Draws, wanted: Sequence[int], resamples: int, seed: int) -> _ByVerdict:
    """Return the curves that could be computed for every query of pass@k."""
    counting = draws.where(draws.counts)
    largest = _largest_k(counting)
    ks = estimators.steps_up_to(largest, wanted)
    tables = [_curves_of(pool, ks, seed) for pool in _pools(counting, largest)] if ks else []
    queries = sum(len(one["pass_at_k"]) for one in tables)
    lines = {name: _curve(table, resamples, seed) for name, table in _joined(tables).items() if len(table) == queries}
    bounds = [estimators.kl_bound(k) for k in ks]
    return _ByVerdict(largest, {"queries": queries, "k": ks, "kl_bound": bounds, "lines": lines})


def _curves_of(pool: _Pool, ks: Sequence[int], seed: int) -> dict[str, Floats]:
    """Return the tables (queries × values of k) of all curves, by name.

    A row is NaN if a candidate of its query lacks the data.
    """
    right, rewards, seconds = map(pool.table, (pool.draws.right, pool.draws.reward, pool.draws.seconds))
    scored, n, passes = _complete(rewards), right.shape[1], right.sum(axis=1).astype(int)
    answers, known = pool.answers()

    def majority(votes: Floats, k: int) -> Floats:
        return majority_at_k(answers, right.astype(bool), k, votes, resamples=MAJORITY_RESAMPLES, seed=seed)

    return {
        "pass_at_k": np.array([[estimators.pass_at_k(n, c, k) for k in ks] for c in range(n + 1)])[passes],
        "pass_hat_k": np.array([[estimators.pass_hat_k(n, c, k) for k in ks] for c in range(n + 1)])[passes],
        "seconds": _over_k(ks, _complete(seconds), lambda k: k * row_sums(seconds) / n),
        "best_by_reward": _over_k(ks, scored, lambda k: best_of_k(rewards, right, k)),
        "reward_of_best": _over_k(ks, scored, lambda k: expected_max(rewards, k)),
        "kl_estimate": _over_k(ks, known & scored, lambda k: best_of_k(rewards, _divergences(answers, k), k)),
        "majority": _over_k(ks, known, lambda k: majority(np.ones(right.shape), k)),
        "weighted_majority": _over_k(ks, known & scored, lambda k: majority(1.0 / (1.0 + np.exp(-rewards)), k)),
    }


def _divergences(answers: Integers, k: int) -> Floats:
    """Return the KL divergence (nats) for best-of-``k``, as estimated from each candidate's answer.

    The probability of an answer is the share of the candidates that give it.
    """
    n = answers.shape[1]
    sizes = (answers[:, :, None] == answers[:, None, :]).sum(axis=2)
    return np.array([estimators.kl_estimate(k, size / n) for size in range(1, n + 1)])[sizes - 1]


def _curve(table: Floats, resamples: int, seed: int) -> Curve:
    bounds = [_interval(column, resamples, seed) for column in table.T]
    return {
        "mean": [float(column.mean()) for column in table.T],
        "low": [low for low, _ in bounds],
        "high": [high for _, high in bounds],
    }


# curves by score ----------------------------------------------------------------------------------------------------


class _ByScore(NamedTuple):
    largest: int
    analysis: ScoreAnalysis | None


def _by_score(draws: Draws, wanted: Sequence[int], gold: GoldScores, resamples: int, seed: int) -> _ByScore:
    """Return the analysis by score; None if no sample has a score. ``gold`` has places of queries as its keys."""
    has_score = ~np.isnan(draws.reward)
    scored = draws.where(draws.independent & has_score)
    greedy = draws.where(draws.greedy & has_score)
    largest = _largest_k(scored)
    ks = estimators.steps_up_to(largest, wanted)
    if not ks:
        return _ByScore(largest, None)
    means = _joined([_scores_of(pool, greedy, gold, ks) for pool in _pools(scored, largest)])
    queries = len(means["score"])
    steps = _steps(means, ks, resamples, seed)
    greedy_scores = [_greedy_scores(means, place, k, resamples, seed) for place, k in enumerate(ks)]
    return _ByScore(
        largest,
        {
            "queries": queries,
            "left_out": int(draws.query.max(initial=-1)) + 1 - queries,
            "steps": steps,
            "knee": estimators.knee(ks, [step["score"] for step in steps]),
            "greedy": greedy_scores if "improvement" in means else [],
            "gold": _gold_curve(means["gold"], ks, resamples, seed) if "gold" in means else None,
        },
    )


def _scores_of(pool: _Pool, greedy: Draws, gold: GoldScores, ks: Sequence[int]) -> dict[str, Floats]:
    """Return the values by name (queries × values of k). An unknown value is NaN."""
    rewards, seconds, usd = map(pool.table, (pool.draws.reward, pool.draws.seconds, pool.draws.usd))
    keys = zip(pool.draws.query.tolist(), pool.draws.index.tolist(), strict=True)
    golden = pool.table(np.array([gold.get(key, math.nan) for key in keys]))
    n, everywhere = rewards.shape[1], np.ones(len(rewards), bool)
    place = {query: number for number, query in reversed(list(enumerate(greedy.query.tolist())))}
    beside = np.array([place.get(query, -1) for query in pool.queries.tolist()])
    score, alone = (
        np.where(beside >= 0, np.append(values, np.nan)[beside], np.nan)
        for values in (greedy.reward, np.where(greedy.seconds == 0, np.nan, greedy.seconds))
    )
    has_greedy, timed = beside >= 0, _complete(np.column_stack([alone, seconds]))
    higher, equal = (rewards > score[:, None]).astype(np.float64), (rewards == score[:, None]).astype(np.float64)
    return {
        "score": _over_k(ks, everywhere, lambda k: expected_max(rewards, k)),
        "seconds": _over_k(ks, _complete(seconds), lambda k: k * row_sums(seconds) / n),
        "usd": _over_k(ks, _complete(usd), lambda k: k * row_sums(usd) / n),
        "gold": _over_k(ks, _complete(golden), lambda k: best_of_k(rewards, golden, k)),
        "greedy": _over_k(ks, has_greedy, lambda k: score),
        "improvement": _over_k(ks, has_greedy, lambda k: expected_max(rewards, k) - score),
        "win": _over_k(ks, has_greedy, lambda k: best_of_k(rewards, higher, k)),
        "tie": _over_k(ks, has_greedy, lambda k: best_of_k(rewards, equal, k)),
        "greedy_seconds": _over_k(ks, timed, lambda k: alone),
        "seconds_beside_greedy": _over_k(ks, timed, lambda k: k * row_sums(seconds) / n),
    }


def _steps(means: Mapping[str, Floats], ks: Sequence[int], resamples: int, seed: int) -> list[ScoreStep]:
    steps: list[ScoreStep] = []
    for place, k in enumerate(ks):
        column = means["score"][:, place]
        score, (low, high) = float(column.mean()), _interval(column, resamples, seed)
        before = steps[-1] if steps else None
        steps.append(
            {
                "k": k,
                "score": score,
                "low": low,
                "high": high,
                "gain": (score - before["score"]) / (k - before["k"]) if before else None,
                "seconds": _mean(means, "seconds", place),
                "usd": _mean(means, "usd", place),
                "gold": _mean(means, "gold", place),
            }
        )
    return steps


def _greedy_scores(means: Mapping[str, Floats], place: int, k: int, resamples: int, seed: int) -> GreedyScores:
    greedy, improvement, win, tie = (
        _mean(means, name, place) or 0.0 for name in ("greedy", "improvement", "win", "tie")
    )
    one, several = _mean(means, "greedy_seconds", place), _mean(means, "seconds_beside_greedy", place)
    gains = means.get("improvement", np.zeros((0, place + 1)))[:, place]
    return {
        "k": k,
        "queries": len(gains),
        "greedy": greedy,
        "best": greedy + improvement,
        "improvement": improvement,
        "interval": list(_interval(gains, resamples, seed)),
        "win": win,
        "tie": tie,
        "loss": 1.0 - win - tie,
        "overhead": several / one if one and several is not None else None,
    }


def _gold_curve(gold: Floats, ks: Sequence[int], resamples: int, seed: int) -> GoldCurve:
    means = gold.mean(axis=0).tolist()
    peak = max(range(len(means)), key=lambda place: means[place])
    high = _interval(gold[:, -1], resamples, seed)[1]
    return {"peak_k": ks[peak], "peak": means[peak], "last": means[-1], "hacked": high < means[peak]}


def _mean(means: Mapping[str, Floats], name: str, place: int) -> float | None:
    return float(means[name][:, place].mean()) if name in means else None


def _gold_scores(gold: Path, ids: Sequence[str]) -> dict[tuple[int, int], float]:
    """Return {(place of the query in ``ids``, candidate index): score} of the run ``gold``."""
    places = {query: place for place, query in enumerate(ids)}
    scores: dict[tuple[int, int], float] = {}
    for block in blocks_of_run(gold):
        draws = block.draws.where(~np.isnan(block.draws.reward))
        rows = zip(draws.query.tolist(), draws.index.tolist(), draws.reward.tolist(), strict=True)
        scores |= {
            (places[block.ids[query]], index): value for query, index, value in rows if block.ids[query] in places
        }
    return scores


# the reward and the greedy candidate --------------------------------------------------------------------------------


def _greedy_comparison(draws: Draws, resamples: int, seed: int) -> GreedyComparison | None:
    """Return the comparison; None if no query has both a greedy candidate and a sample with a reward.

    Candidates whose verdict is neither pass nor fail are omitted.
    """
    rows: list[tuple[float, float, float, float]] = []
    with_greedy = np.unique(draws.query[draws.greedy & draws.conclusive])
    for query in _by_query(draws.where(np.isin(draws.query, with_greedy))):
        scored = query.where(query.conclusive & ~query.greedy & ~np.isnan(query.reward))
        if len(scored.reward):
            best = float(scored.right[scored.reward == scored.reward.max()].mean())
            one = query.where(np.flatnonzero(query.greedy & query.conclusive)[:1])
            seconds = float(np.nansum(query.seconds[query.sampled]))
            rows.append((float(one.right[0]), best, float(np.nan_to_num(one.seconds[0])), seconds))
    if not rows:
        return None
    before, after, one, all_samples = np.array(rows).T
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

    def add(self, scored: Draws) -> None:
        """Add the draws of one query that count towards pass@k and have a reward."""
        good, bad = scored.reward[scored.right][:, None], scored.reward[~scored.right][None]
        self._ordered += float((good > bad).sum() + 0.5 * (good == bad).sum())
        self._pairs += good.size * bad.size
        table = np.column_stack([scored.reward, np.nan_to_num(scored.characters)])
        table -= table.mean(axis=0)
        self._squares += table.T @ table
        self._scored += len(scored.reward)

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

    def add(self, scored: Draws, block: Block) -> None:
        """Add the draws of one query that count towards pass@k and have a reward."""
        if not scored.right.any():
            return
        last = len(scored.reward) - 1  # of equal rewards, the last one counts
        highest = last - int(scored.reward[::-1].argmax())
        good = last - int(np.where(scored.right, scored.reward, -np.inf)[::-1].argmax())
        gap = float(scored.reward[highest] - scored.reward[good])
        if gap > 0:
            query = int(scored.query[0])
            explanation = block.rows["verification_explanation"][int(scored.row[highest])].as_py() or ""
            self._widest.append(
                {
                    "query_id": block.ids[query],
                    "split": block.splits[query],
                    "rewarded": int(scored.index[highest]),
                    "verified": int(scored.index[good]),
                    "gap": gap,
                    "explanation": explanation,
                }
            )
            if len(self._widest) >= 2 * self._most + 100:
                self._widest = self.widest()

    def widest(self) -> list[Disagreement]:
        """Return the disagreements with the largest ``gap``, largest first."""
        return heapq.nsmallest(self._most, self._widest, key=lambda row: (-row["gap"], row["query_id"]))
