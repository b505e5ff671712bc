"""Best-of-N estimators: pure functions over the candidates of one query, and curves over all queries.

Every formula names its source. Estimates over subsets are unbiased: they average over all subsets of ``k`` candidates.
Used by the analysis and report rooms and by ``bestofn loop``.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bestofn.builders.statistics.intervals import RESAMPLES, RunningMean

POWERS = (1, 2, 4, 8, 16, 32, 64, 128, 256)  # the k of a curve
UNREACHED_SHARE = 0.05  # of the queries; these may have fewer candidates than the largest k of a curve


def pass_at_k(n: int, c: int, k: int) -> float:
    """Unbiased probability that at least one of ``k`` samples is right, given ``n`` candidates with ``c`` right.

    1 − C(n−c, k)/C(n, k) in its stable product form (Chen et al. 2021, arXiv:2107.03374).
    Raises ``ValueError`` unless 0 ≤ c ≤ n and 1 ≤ k ≤ n.
    """
    _check(n, c, k)
    if n - c < k:
        return 1.0
    return 1.0 - math.prod(1.0 - k / i for i in range(n - c + 1, n + 1))


def pass_hat_k(n: int, c: int, k: int) -> float:
    """Unbiased probability that all of ``k`` samples are right: C(c, k)/C(n, k).

    This is pass^k of τ-bench (arXiv:2406.12045). Raises ``ValueError`` as ``pass_at_k`` does.
    """
    _check(n, c, k)
    return math.comb(c, k) / math.comb(n, k)


def expected_max(values: Sequence[float], k: int) -> float:
    """Unbiased mean of the maximum of ``k`` values drawn without replacement.

    Σ_{i≥k} C(i−1, k−1)/C(n, k) · v_(i), with the values in ascending order.
    """
    return best_of_k([(value, value) for value in values], k)


def best_of_k(scored: Sequence[tuple[float, float]], k: int) -> float:
    """Expected truth of the best-scored of ``k`` samples; ``scored`` holds (score, truth) per candidate of one query.

    The weights of ``expected_max`` are applied to the truths, ordered by score. Tied scores share their weight equally,
    as a random choice among them would (Gao et al. 2022, arXiv:2210.10760, with the unbiased subset estimator).
    """
    n = len(scored)
    _check(n, 0, k)
    ordered = sorted(scored, key=lambda pair: pair[0])
    total = math.comb(n, k)
    weights = [math.comb(i, k - 1) / total for i in range(n)]  # how often the i-th smallest is the best of k
    value, start = 0.0, 0
    while start < n:
        stop = start
        while stop < n and ordered[stop][0] == ordered[start][0]:
            stop += 1
        truth = sum(pair[1] for pair in ordered[start:stop]) / (stop - start)
        value += truth * sum(weights[start:stop])
        start = stop
    return value


def majority_at_k(
    answers: Sequence[Hashable],
    right: Sequence[bool],
    k: int,
    *,
    weights: Sequence[float] | None = None,
    resamples: int = 1_000,
    seed: int = 0,
) -> float:
    """Share of the subsets of ``k`` candidates whose (weighted) majority answer is right.

    ``answers`` are the canonical answers of one query's candidates. A tie goes to the answer with the lowest index.
    All subsets are counted when there are at most ``resamples`` of them; otherwise ``resamples`` random subsets are.
    """
    n = len(answers)
    _check(n, 0, k)
    votes = [1.0] * n if weights is None else list(weights)

    def majority_is_right(subset: Sequence[int]) -> bool:
        tally: dict[Hashable, float] = {}
        for index in subset:
            tally[answers[index]] = tally.get(answers[index], 0.0) + votes[index]
        winner = max(tally, key=lambda answer: tally[answer])
        return next(right[index] for index in subset if answers[index] == winner)

    subsets: Iterable[Sequence[int]]
    if math.comb(n, k) <= resamples:
        subsets = itertools.combinations(range(n), k)
        resamples = math.comb(n, k)
    else:
        shuffled = np.random.default_rng(seed).random((resamples, n)).argsort(axis=1)
        subsets = np.sort(shuffled[:, :k], axis=1).tolist()
    return sum(map(majority_is_right, subsets)) / resamples


class CurvePoint(NamedTuple):
    """One point of a curve over k, with the confidence interval by query."""

    k: int
    mean: float
    low: float
    high: float
    queries: int  # the same for every k of a curve


def largest_k(sizes: Mapping[int, int]) -> int:
    """The largest k that at least 95 % of the queries reach; ``sizes`` maps pool size -> number of queries.

    A larger k would compare different sets of queries along one curve. Queries with an empty pool are not counted.
    0 when every pool is empty.
    """
    skipped = int(UNREACHED_SHARE * sum(count for size, count in sizes.items() if size > 0))
    for size in sorted(size for size in sizes if size > 0):
        skipped -= sizes[size]
        if skipped < 0:
            return size
    return 0


def curve_steps(largest: int) -> list[int]:
    """The values of k of a curve: the powers of two up to ``largest``, and ``largest``."""
    return sorted({k for k in POWERS if k <= largest} | ({largest} if largest else set()))


def pass_curve(pools: Mapping[tuple[int, int], int], *, resamples: int = RESAMPLES, seed: int = 0) -> list[CurvePoint]:
    """pass@k for each k of ``curve_steps``, over the queries with at least ``largest_k`` candidates.

    ``pools`` maps (number of candidates, number of correct candidates) -> number of queries.
    """
    sizes: Counter[int] = Counter()
    for (n, _), count in pools.items():
        sizes[n] += count
    largest = largest_k(sizes)
    reaching = {pool: count for pool, count in pools.items() if pool[0] >= largest}
    points: list[CurvePoint] = []
    for k in curve_steps(largest):
        values = RunningMean()
        for (n, c), count in reaching.items():
            values.add(pass_at_k(n, c, k), count)
        points.append(CurvePoint(k, values.mean, *values.interval(resamples=resamples, seed=seed), values.count))
    return points


def knee(xs: Sequence[float], ys: Sequence[float]) -> float:
    """The x where a curve bends: its point highest above the line from first to last, on a logarithmic x axis."""
    if len(xs) < 3 or ys[-1] == ys[0]:
        return xs[0]
    across = [(math.log(x) - math.log(xs[0])) / (math.log(xs[-1]) - math.log(xs[0])) for x in xs]
    up = [(y - ys[0]) / (ys[-1] - ys[0]) for y in ys]
    return xs[max(range(len(xs)), key=lambda i: up[i] - across[i])]


def kl_bound(n: int) -> float:
    """Upper bound of KL(best-of-n ‖ reference): log n − (n−1)/n (Beirami et al., arXiv:2401.01879)."""
    return math.log(n) - (n - 1) / n


def kl_estimate(n: int, epsilon: float) -> float:
    """Beirami's estimator of KL(best-of-n ‖ reference), in nats.

    ``epsilon`` is the reference's probability of the best sampled answer.
    (1−ε)^n [log n + (n−1) log(1−ε) − (n−1)/n] + (1−(1−ε)^n) log((1−(1−ε)^n)/ε)  (arXiv:2401.01879).
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
    if not 1 <= k <= n:
        raise ValueError(f"k is {k} for {n} candidates; expected 1 ≤ k ≤ {n}")
