"""Best-of-N analysis from one pool: every k from the same answers, by unbiased subset estimators.

A pool of n answers a query gives the curve for all k ≤ n without drawing again. Intervals resample whole queries.
"""

from __future__ import annotations

import heapq
import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from bestofn.builders.analysis.summary import picked_share
from bestofn.builders.statistics import estimators, intervals
from bestofn.builders.tables import candidate_table
from bestofn.builders.tables.candidate_table import Group


def analyze(path: Path, *, resamples: int = intervals.RESAMPLES, seed: int = 0, read: int = 20) -> dict[str, Any]:
    """Curves, comparisons and disagreements of the run at ``path``; JSON-ready. ``read`` disagreements are listed."""
    table = candidate_table.read(path)
    curve = curves(table.groups, resamples=resamples, seed=seed)
    return {
        "run": path.name,
        "queries": sum(1 for _ in table.groups()),
        "curves": curve,
        "sweep": sweep(curve),
        "knee": knees(curve),
        "greedy": greedy_against_best(table.groups(), resamples=resamples, seed=seed),
        "reward": reward_against_truth(table.groups()),
        "over_optimisation": over_optimised(curve),
        "disagreements": disagreements(table.groups(), read),
    }


def curves(groups: Callable[[], Iterable[Group]], *, resamples: int, seed: int) -> dict[str, Any]:
    """By k: pass@k, pass^k, best of k by reward, majority and weighted majority, and the mean reward of the best.

    ``kl_bound`` and ``kl_estimate``: how far the choice of the best of k by reward goes from the model's own answers,
    in nats; the estimate is over what the answers come to, with the share of its cluster as the chance of an answer.
    All over the same queries, those with the largest pool that 95 % reach, so that the points can be compared. A
    curve that lacks its column (rewards, answer clusters) is left out. ``groups()`` gives the queries each time anew.
    """
    sizes = Counter(len(group.conclusive) for group in groups())
    largest = estimators.largest_k(sizes)
    if not largest:
        return {"queries": 0, "k": [], "lines": {}}
    ks, count = estimators.curve_steps(largest), sum(count for size, count in sizes.items() if size >= largest)
    found: dict[str, list[intervals.RunningMean]] = {}
    for group in groups():
        if len(group.conclusive) >= largest:
            for name, points in _of_query(group, ks, seed).items():
                line = found.setdefault(name, [intervals.RunningMean(seed) for _ in ks])
                for values, point in zip(line, points, strict=True):
                    values.add(point)
    lines = {}
    for name, line in found.items():
        if line[0].count == count:  # every query has what the curve needs
            low, high = zip(*(values.interval(resamples=resamples, seed=seed) for values in line), strict=True)
            lines[name] = {"mean": [values.mean for values in line], "low": list(low), "high": list(high)}
    return {"queries": count, "k": ks, "kl_bound": [estimators.kl_bound(k) for k in ks], "lines": lines}


def sweep(curve: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a larger n buys: by k the share right of the best by reward (pass@k without rewards), the points gained by
    each sample since the k before, the mean reward of the best, and the seconds of k samples one after another.
    """
    lines = curve["lines"]
    chosen = lines.get("best_by_reward") or lines.get("pass_at_k")
    rows: list[dict[str, Any]] = []
    for place, k in enumerate(curve["k"]):
        share = chosen["mean"][place]
        before = rows[-1] if rows else None
        rows.append(
            {
                "k": k,
                "share": share,
                "gain": (share - before["share"]) / (k - before["k"]) if before else None,
                "reward": lines["reward_of_best"]["mean"][place] if "reward_of_best" in lines else None,
                "seconds": lines["seconds"]["mean"][place] if "seconds" in lines else None,
            }
        )
    return rows


def knees(curve: Mapping[str, Any]) -> dict[str, float]:
    """Where each accuracy curve bends: from there on, doubling n buys less than it did."""
    lines = curve["lines"]
    return {
        name: estimators.knee(curve["k"], lines[name]["mean"])
        for name in ("pass_at_k", "best_by_reward", "majority")
        if name in lines
    }


def over_optimised(curve: Mapping[str, Any]) -> dict[str, Any] | None:
    """Reward against truth as k grows: the k where the truth of the best by reward peaks (Gao et al. 2022).

    ``hacked``: the truth at the largest k lies below its peak by more than the interval there; None without rewards.
    """
    lines = curve["lines"]
    if "best_by_reward" not in lines or "reward_of_best" not in lines:
        return None
    truth = lines["best_by_reward"]
    peak = max(range(len(curve["k"])), key=lambda place: truth["mean"][place])
    return {
        "peak_k": curve["k"][peak],
        "peak_truth": truth["mean"][peak],
        "last_truth": truth["mean"][-1],
        "reward_gain": lines["reward_of_best"]["mean"][-1] - lines["reward_of_best"]["mean"][0],
        "hacked": truth["high"][-1] < truth["mean"][peak],
    }


def greedy_against_best(groups: Iterable[Group], *, resamples: int, seed: int) -> dict[str, Any] | None:
    """The greedy answer against the best of the samples by reward, on the same queries; None without a greedy arm.

    Answers that nobody could judge count on neither side: the best by reward would mostly be spared them.
    ``overhead``: seconds of all samples over seconds of the greedy answer. ``wins``, ``losses``: queries where only
    one of the two is right; ``p``: McNemar's exact test over queries whose best sample is one.
    """
    rows = array("d")
    for group in groups:
        greedy = [place for place in group.judged if group.greedy[place]]
        picked = picked_share(group, [place for place in group.judged if not group.greedy[place]])
        if greedy and picked is not None:
            sampled = sum(group.seconds[place] or 0.0 for place in group.sampled)
            rows.extend((float(group.right(greedy[0])), picked, group.seconds[greedy[0]] or 0.0, sampled))
    if not rows:
        return None
    before, after, one, many = np.frombuffer(rows).reshape(-1, 4).T
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
        "p": intervals.mcnemar(losses, wins),
        "greedy_seconds": float(one.mean()),
        "best_of_n_seconds": float(many.mean()),
        "overhead": float(many.mean() / one.mean()) if one.mean() else None,
    }


def reward_against_truth(groups: Iterable[Group]) -> dict[str, Any] | None:
    """How well the reward orders right before wrong within a query, and how far it follows length.

    None without rewards. ``auc``: the share ordered right of all pairs of a pass and a fail of one query (ties half).
    """
    right = pairs = 0.0
    squares, scored_candidates = np.zeros((2, 2)), 0  # of rewards and lengths about their means within the query
    for group in groups:
        scored = [(value, place) for place in group.conclusive if (value := group.rewards[place]) is not None]
        passes = [value for value, place in scored if group.right(place)]
        fails = [value for value, place in scored if not group.right(place)]
        right += sum((good > bad) + 0.5 * (good == bad) for good in passes for bad in fails)
        pairs += len(passes) * len(fails)
        if scored:
            both = np.array([(value, group.lengths[place] or 0) for value, place in scored], float)
            both -= both.mean(axis=0)
            squares += both.T @ both
            scored_candidates += len(scored)
    if not scored_candidates:
        return None
    spread = math.sqrt(squares[0, 0] * squares[1, 1])
    return {
        "auc": right / pairs if pairs else None,
        "pairs": int(pairs),
        "length_correlation": float(squares[0, 1] / spread) if spread else 0.0,
    }


def disagreements(groups: Iterable[Group], count: int) -> list[dict[str, Any]]:
    """Queries whose best by reward failed although another sample passed, the widest gap first: worth reading."""
    return heapq.nsmallest(count, _overruled(groups), key=lambda row: (-row["gap"], row["query_id"]))


def _overruled(groups: Iterable[Group]) -> Iterator[dict[str, Any]]:
    for group in groups:
        scored = [(value, place) for place in group.conclusive if (value := group.rewards[place]) is not None]
        passes = [(value, place) for value, place in scored if group.right(place)]
        if not passes:
            continue
        top, good = max(scored), max(passes)
        if top[0] > good[0]:
            yield {
                "query_id": group.query_id,
                "split": group.split,
                "rewarded": group.indices[top[1]],
                "verified": group.indices[good[1]],
                "gap": top[0] - good[0],
                "explanation": group.explanations[top[1]],
            }


def _of_query(group: Group, ks: Sequence[int], seed: int) -> dict[str, list[float]]:
    """Each curve of one query."""
    places = group.conclusive
    marks = [group.right(place) for place in places]
    n, c = len(marks), sum(marks)
    found = {
        "pass_at_k": [estimators.pass_at_k(n, c, k) for k in ks],
        "pass_hat_k": [estimators.pass_hat_k(n, c, k) for k in ks],
    }
    seconds = [value for place in places if (value := group.seconds[place]) is not None]
    if len(seconds) == n:
        found["seconds"] = [k * sum(seconds) / n for k in ks]
    rewards = [group.rewards[place] for place in places]
    values = [value for value in rewards if value is not None]
    if len(values) == n:
        scored = list(zip(values, map(float, marks), strict=True))
        found["best_by_reward"] = [estimators.best_of_k(scored, k) for k in ks]
        found["reward_of_best"] = [estimators.expected_max(values, k) for k in ks]
    clusters = [group.clusters[place] for place in places]
    if all(cluster is not None for cluster in clusters):
        if len(values) == n:
            chances = Counter(clusters)
            found["kl_estimate"] = [
                estimators.best_of_k(
                    [(v, estimators.kl_estimate(k, chances[c] / n)) for v, c in zip(values, clusters, strict=True)], k
                )
                for k in ks
            ]
        options: Mapping[str, Any] = {"resamples": 100, "seed": seed}
        found["majority"] = list(_majorities(_pattern(clusters), tuple(marks), tuple(ks), seed))
        if len(values) == n:
            weights = [1.0 / (1.0 + np.exp(-value)) for value in values]
            found["weighted_majority"] = [
                estimators.majority_at_k(clusters, marks, k, weights=weights, **options) for k in ks
            ]
    return found


def _pattern(clusters: Sequence[Any]) -> tuple[int, ...]:
    """Which answers are the same, whatever they say: a, b, a, c → 0, 1, 0, 2."""
    places: dict[Any, int] = {}
    return tuple(places.setdefault(cluster, len(places)) for cluster in clusters)


@lru_cache(maxsize=1 << 14)
def _majorities(
    clusters: tuple[int, ...], marks: tuple[bool, ...], ks: tuple[int, ...], seed: int
) -> tuple[float, ...]:
    return tuple(estimators.majority_at_k(clusters, marks, k, resamples=100, seed=seed) for k in ks)
