"""Best-of-N estimators: pure functions over the candidates of one query, and curves over all queries.

Every formula names its source. Estimates over subsets are unbiased: they average over all subsets of ``k`` candidates.
``statistics.subsets`` has the estimators that use scores or answers. The packages ``analysis`` and ``report`` and
``bestofn loop`` use this module.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypedDict

from bestofn.builders.statistics.intervals import RESAMPLES, bootstrap_mean_interval
from bestofn.builders.statistics.subsets import check_k

POWERS = (1, 2, 4, 8, 16, 32, 64, 128, 256)  # the values of k in a curve
KNEE_HEIGHT = 0.1  # a knee is at least this share of the whole rise above the straight line
UNREACHED_SHARE = 0.05  # this share of the queries may have fewer candidates than the largest k of a curve


def pass_at_k(n: int, c: int, k: int) -> float:
    """Estimate the probability that at least one of ``k`` samples is right, from ``n`` candidates with ``c`` right.

    The estimate is unbiased: 1 − C(n−c, k)/C(n, k), in its stable product form (Chen et al. 2021, arXiv:2107.03374).
    Raises ``ValueError`` unless 0 ≤ c ≤ n and 1 ≤ k ≤ n.
    """
    _check(n, c, k)
    if n - c < k:
        return 1.0
    return 1.0 - math.prod(1.0 - k / i for i in range(n - c + 1, n + 1))


def pass_hat_k(n: int, c: int, k: int) -> float:
    """Estimate the probability that all of ``k`` samples are right, from ``n`` candidates with ``c`` right.

    The estimate is unbiased: C(c, k)/C(n, k). This is pass^k of τ-bench (arXiv:2406.12045).
    Raises ``ValueError`` unless 0 ≤ c ≤ n and 1 ≤ k ≤ n.
    """
    _check(n, c, k)
    return math.comb(c, k) / math.comb(n, k)


class CurvePoint(TypedDict):
    """One point of a curve over k: the mean over queries and its confidence interval (``low``, ``high``)."""

    k: int
    mean: float
    low: float
    high: float
    queries: int  # number of queries; equal for all points of a curve


def mean_point(k: int, values: Mapping[float, int], resamples: int = RESAMPLES, seed: int = 0) -> CurvePoint:
    """Return the mean of one value per query and its 95 % interval. ``values`` maps value -> number of queries."""
    queries = sum(values.values())
    bounds = bootstrap_mean_interval(list(values), resamples=resamples, seed=seed, counts=list(values.values()))
    mean = math.fsum(value * count for value, count in values.items()) / queries  # in any order
    return {"k": k, "mean": mean, "low": bounds[0], "high": bounds[1], "queries": queries}


def largest_k(sizes: Mapping[int, int]) -> int:
    """Return the largest k such that at least 95 % of the queries have k candidates; 0 if no query has any.

    ``sizes`` maps number of candidates -> number of queries. Queries without candidates are not counted. A larger k
    would compare points of a curve that come from different queries.
    """
    skipped = int(UNREACHED_SHARE * sum(count for size, count in sizes.items() if size > 0))
    for size in sorted(size for size in sizes if size > 0):
        skipped -= sizes[size]
        if skipped < 0:
            return size
    return 0


def curve_steps(largest: int) -> list[int]:
    """Return the values of k in a curve: the powers of two up to ``largest``, and ``largest`` itself."""
    return sorted({k for k in POWERS if k <= largest} | ({largest} if largest else set()))


def steps_up_to(largest: int, wanted: Sequence[int] = ()) -> list[int]:
    """Return the ``wanted`` values of k up to ``largest``, sorted; if there are none, the values of ``curve_steps``."""
    return sorted({k for k in wanted if k <= largest}) or curve_steps(largest)


def pass_curve(pools: Mapping[tuple[int, int], int], *, resamples: int = RESAMPLES, seed: int = 0) -> list[CurvePoint]:
    """Compute pass@k for each k of ``curve_steps``, over the queries with at least ``largest_k`` candidates.

    ``pools`` maps (number of candidates, number of correct candidates) -> number of queries.
    """
    sizes: Counter[int] = Counter()
    for (n, _), count in pools.items():
        sizes[n] += count
    largest = largest_k(sizes)
    reaching = {pool: count for pool, count in pools.items() if pool[0] >= largest}
    points: list[CurvePoint] = []
    for k in curve_steps(largest):
        values: Counter[float] = Counter()
        for (n, c), count in reaching.items():
            values[pass_at_k(n, c, k)] += count
        points.append(mean_point(k, values, resamples, seed))
    return points


def knee(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """Return the x of the curve's knee: the point farthest above the line from the first point to the last.

    The x axis is logarithmic, and both axes are scaled to 0…1. Returns None if the curve has fewer than three points,
    or does not rise from its first to its last point. Returns None also if no point is ``KNEE_HEIGHT`` above the line:
    more samples then help as much at the end as at the beginning.
    """
    if len(xs) < 3 or ys[-1] <= ys[0]:
        return None
    across = [(math.log(x) - math.log(xs[0])) / (math.log(xs[-1]) - math.log(xs[0])) for x in xs]
    up = [(y - ys[0]) / (ys[-1] - ys[0]) for y in ys]
    place = max(range(len(xs)), key=lambda i: up[i] - across[i])
    return xs[place] if up[place] - across[place] >= KNEE_HEIGHT else None


def kl_bound(n: int) -> float:
    """Return an upper bound of KL(best-of-n ‖ reference), in nats: log n − (n−1)/n (arXiv:2401.01879)."""
    return math.log(n) - (n - 1) / n


def kl_estimate(n: int, epsilon: float) -> float:
    """Estimate KL(best-of-n ‖ reference) in nats (Beirami et al., arXiv:2401.01879).

    ``epsilon`` (ε) is the probability of the best sampled answer under the reference model. The estimate is
    (1−ε)^n [log n + (n−1) log(1−ε) − (n−1)/n] + (1−(1−ε)^n) log((1−(1−ε)^n)/ε).
    Raises ``ValueError`` unless 0 < ε ≤ 1.
    """
    if not 0.0 < epsilon <= 1.0:
        raise ValueError(f"epsilon is {epsilon}; expected a probability above 0 and at most 1")
    if n == 1 or epsilon == 1.0:
        return 0.0
    miss = (1.0 - epsilon) ** n
    first = miss * (math.log(n) + (n - 1) * math.log1p(-epsilon) - (n - 1) / n)
    return first + (1.0 - miss) * math.log((1.0 - miss) / epsilon)


def _check(n: int, c: int, k: int) -> None:
    if not 0 <= c <= n:
        raise ValueError(f"{c} of {n} candidates are right; expected a count from 0 to {n}")
    check_k(n, k)
