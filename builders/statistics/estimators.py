"""The numbers of best-of-N: pure functions, each with the source of its formula.

Intervals are by *query*: the candidates of one query are not independent, so a bootstrap draws whole queries.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

POWERS = (1, 2, 4, 8, 16, 32, 64, 128, 256)  # the k of a curve
RESAMPLES = 2_000
MOST_UNITS = 2_000  # kinds or groups that a bootstrap draws from


def pass_at_k(n: int, c: int, k: int) -> float:
    """Unbiased chance that at least one of ``k`` draws is right, of ``n`` candidates with ``c`` right.

    1 − C(n−c, k)/C(n, k) in its stable product form (Chen et al. 2021, arXiv:2107.03374).
    Raises ``ValueError`` unless 0 ≤ c ≤ n and 1 ≤ k ≤ n.
    """
    _check(n, c, k)
    if n - c < k:
        return 1.0
    return 1.0 - math.prod(1.0 - k / i for i in range(n - c + 1, n + 1))


class CurvePoint(NamedTuple):
    """One point of a curve over k, with its interval by query."""

    k: int
    mean: float
    low: float
    high: float
    queries: int  # the same for every k of a curve


def largest_k(sizes: Mapping[int, int]) -> int:
    """The largest k that 95 % of the queries reach, of pool size -> queries; a curve over fewer would compare
    different ones. Queries without a pool do not count; 0 when there are no others."""
    skipped = int(0.05 * sum(count for size, count in sizes.items() if size > 0))
    for size in sorted(size for size in sizes if size > 0):
        skipped -= sizes[size]
        if skipped < 0:
            return size
    return 0


def steps(largest: int) -> list[int]:
    """The k of a curve: powers of two and the largest."""
    return sorted({k for k in POWERS if k <= largest} | ({largest} if largest else set()))


def pass_curve(pools: Mapping[tuple[int, int], int], *, resamples: int = RESAMPLES, seed: int = 0) -> list[CurvePoint]:
    """pass@k at every step of k, of (samples, right ones) -> queries; over the queries that reach ``largest_k``."""
    sizes: Counter[int] = Counter()
    for (n, _), count in pools.items():
        sizes[n] += count
    largest = largest_k(sizes)
    kept = {pool: count for pool, count in pools.items() if pool[0] >= largest}
    points = []
    for k in steps(largest):
        values = Values()
        for (n, c), count in kept.items():
            values.add(pass_at_k(n, c, k), count)
        points.append(CurvePoint(k, values.mean, *values.interval(resamples=resamples, seed=seed), values.count))
    return points


def pass_hat_k(n: int, c: int, k: int) -> float:
    """Unbiased chance that all of ``k`` draws are right, C(c, k)/C(n, k) (pass^k of τ-bench, arXiv:2406.12045)."""
    _check(n, c, k)
    return math.comb(c, k) / math.comb(n, k)


def expected_max(values: Sequence[float], k: int) -> float:
    """Unbiased E[max of k draws without replacement]: Σ_{i≥k} C(i−1, k−1)/C(n, k) · r_(i), r ascending."""
    return best_of_k([(value, value) for value in values], k)


def best_of_k(scored: Sequence[tuple[float, float]], k: int) -> float:
    """Expected truth of the best-scored of ``k`` draws: ``scored`` holds (score, truth) of one query's candidates.

    The weights of ``expected_max`` laid on the truths, ordered by score; tied scores share their weight evenly, as a
    random choice among them would (Gao et al. 2022, arXiv:2210.10760, with the unbiased subset estimator).
    """
    n = len(scored)
    _check(n, 0, k)
    ordered = sorted(scored, key=lambda pair: pair[0])
    total = math.comb(n, k)
    weights = [math.comb(i, k - 1) / total for i in range(n)]  # the i-th smallest is the best of k this often
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
    """Share of ``k``-subsets whose (weighted) majority answer is right; ties go to the answer seen first.

    ``answers`` are canonical answers of one query's candidates. All subsets are counted when there are at most
    ``resamples`` of them, else so many random ones.
    """
    n = len(answers)
    _check(n, 0, k)
    worth = [1.0] * n if weights is None else list(weights)

    def vote(picked: Sequence[int]) -> bool:
        tally: dict[Hashable, float] = {}
        for index in picked:
            tally[answers[index]] = tally.get(answers[index], 0.0) + worth[index]
        winner = max(tally, key=lambda answer: tally[answer])
        return next(right[index] for index in picked if answers[index] == winner)

    if math.comb(n, k) <= resamples:
        subsets: Iterable[Sequence[int]] = itertools.combinations(range(n), k)
        resamples = math.comb(n, k)
    else:
        shuffled = np.random.default_rng(seed).random((resamples, n)).argsort(axis=1)
        subsets = np.sort(shuffled[:, :k], axis=1).tolist()
    return sum(map(vote, subsets)) / resamples


def kl_bound(n: int) -> float:
    """log n − (n−1)/n: an upper bound of KL(best-of-n ‖ reference), not the KL (Beirami et al., arXiv:2401.01879)."""
    return math.log(n) - (n - 1) / n


def kl_estimate(n: int, epsilon: float) -> float:
    """Beirami's estimator of KL(best-of-n ‖ reference); ``epsilon`` is the reference's chance of the drawn best answer.

    (1−ε)^n [log n + (n−1) log(1−ε) − (n−1)/n] + (1−(1−ε)^n) log((1−(1−ε)^n)/ε)  (arXiv:2401.01879).
    """
    if not 0.0 < epsilon <= 1.0:
        raise ValueError(f"epsilon is {epsilon}; expected a probability above 0 and at most 1")
    if n == 1 or epsilon == 1.0:
        return 0.0
    miss = (1.0 - epsilon) ** n
    first = miss * (math.log(n) + (n - 1) * math.log1p(-epsilon) - (n - 1) / n)
    return first + (1.0 - miss) * math.log((1.0 - miss) / epsilon)


def kl_exact(chances: Sequence[float], n: int) -> float:
    """KL(best-of-n ‖ reference) by enumeration, for outcomes of rising reward with these chances.

    Outcome i is the best of n with chance F_i^n − F_{i−1}^n, F the cumulated chances. For tests and for small worlds.
    """
    total = below = 0.0
    for chance in chances:
        best = (below + chance) ** n - below**n
        below += chance
        if best > 0:
            total += best * math.log(best / chance)
    return total


def bootstrap_mean_interval(
    values: Sequence[float],
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
    counts: Sequence[int] | None = None,
) -> tuple[float, float]:
    """Percentile interval of the mean of one value a query (cluster bootstrap); ``counts``: queries with a value."""
    table = np.asarray(values, float)[:, None]
    return bootstrap_interval(table, lambda means: means[:, 0], level, resamples, seed, counts)


def bootstrap_difference_interval(
    before: Sequence[float] | np.ndarray,
    after: Sequence[float] | np.ndarray,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[float, float]:
    """Percentile interval of mean(after − before), paired by query."""
    difference = np.asarray(after, float) - np.asarray(before, float)
    return bootstrap_mean_interval(list(difference), level=level, resamples=resamples, seed=seed)


def bootstrap_interval(
    table: np.ndarray,
    statistic: Callable[[np.ndarray], np.ndarray],
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
    counts: Sequence[int] | np.ndarray | None = None,
) -> tuple[float, float]:
    """Percentile interval of ``statistic`` of the column means of ``table`` (queries × columns), queries resampled.

    ``statistic`` maps (resamples × columns) means to one value a resample; ``counts`` as in ``resampled_means``.
    """
    if len(table) == 0:
        return (math.nan, math.nan)
    return _middle(statistic(resampled_means(table, resamples, seed, counts)), level)


class Values:
    """One value a query, never all held: their mean and its interval.

    They are counted by kind, and gathered at random into ``MOST_UNITS`` groups once there are more kinds than that.
    """

    def __init__(self, seed: int = 0) -> None:
        self.count = 0
        self._kinds: Counter[float] = Counter()
        self._sums = np.zeros(0)  # of each group; none while the values are counted by kind
        self._sizes = np.zeros(0)
        self._random = random.Random(seed)

    def add(self, value: float, queries: int = 1) -> None:
        """``value`` is that of so many ``queries``."""
        self.count += queries
        if len(self._sums):
            for _ in range(queries):
                self._put(self._random.randrange(MOST_UNITS), value)
            return
        self._kinds[value] += queries
        if len(self._kinds) > MOST_UNITS:
            values = list(self._kinds.elements())
            self._random.shuffle(values)
            self._kinds.clear()
            self._sums, self._sizes = np.zeros(MOST_UNITS), np.zeros(MOST_UNITS)
            for place, each in enumerate(values):
                self._put(place % MOST_UNITS, each)

    @property
    def mean(self) -> float:
        """NaN without values."""
        total = float(self._sums.sum()) + sum(value * count for value, count in self._kinds.items())
        return total / self.count if self.count else math.nan

    def interval(self, level: float = 0.95, resamples: int = RESAMPLES, seed: int = 0) -> tuple[float, float]:
        """As ``bootstrap_mean_interval`` of all the values."""
        if not len(self._sums):
            kinds, counts = list(self._kinds), list(self._kinds.values())
            return bootstrap_mean_interval(kinds, level=level, resamples=resamples, seed=seed, counts=counts)
        chances = np.full(MOST_UNITS, 1.0 / MOST_UNITS)
        means = _drawn_means(self._sums[:, None], self._sizes, chances, MOST_UNITS, resamples, seed)
        return _middle(means[:, 0], level)

    def _put(self, place: int, value: float) -> None:
        self._sums[place] += value
        self._sizes[place] += 1


def resampled_means(
    table: np.ndarray, resamples: int, seed: int, counts: Sequence[int] | np.ndarray | None = None
) -> np.ndarray:
    """(resamples × columns): the column means of ``table`` with its rows drawn anew, with replacement.

    ``counts``: how many rows each row stands for. Equal rows (to 12 decimals) are one kind, and the kinds are drawn in
    ascending order: the same rows give the same numbers in whatever order and however counted they come, and a million
    queries of a few kinds are a small table. More than ``MOST_UNITS`` kinds are gathered at random into so many groups,
    and groups are drawn: the spread of a mean over groups is that over rows, and the time does not grow with the rows.
    """
    rows = np.round(np.asarray(table, float), 12)
    if rows.shape[1] == 1:  # a sort of numbers, many times as fast as one of rows
        values, places = np.unique(rows[:, 0], return_inverse=True)
        kinds = values[:, None]
    else:
        kinds, places = np.unique(rows, axis=0, return_inverse=True)
    weights = np.ones(len(rows)) if counts is None else np.asarray(counts, float)
    held = np.bincount(places.ravel(), weights=weights)
    if len(kinds) <= MOST_UNITS:
        draws = int(held.sum())
        return _drawn_means(kinds, np.ones(len(kinds)), held / draws, draws, resamples, seed)
    every = np.repeat(kinds, held.astype(int), axis=0)
    starts = np.linspace(0, len(every), MOST_UNITS, endpoint=False, dtype=int)
    sums = np.add.reduceat(every[np.random.default_rng(seed).permutation(len(every))], starts, axis=0)
    sizes = np.diff(starts, append=len(every)).astype(float)
    return _drawn_means(sums, sizes, np.full(MOST_UNITS, 1.0 / MOST_UNITS), MOST_UNITS, resamples, seed)


def _middle(values: np.ndarray, level: float) -> tuple[float, float]:
    """The quantiles between which ``level`` of the values lie."""
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(values, [tail, 1.0 - tail])
    return float(low), float(high)


def _drawn_means(
    sums: np.ndarray, sizes: np.ndarray, chances: np.ndarray, draws: int, resamples: int, seed: int
) -> np.ndarray:
    """(resamples × columns): means of ``draws`` groups drawn by ``chances``; ``sizes`` is the rows in each."""
    rng = np.random.default_rng(seed)
    means = np.empty((resamples, sums.shape[1]))
    step = max(1, 2_000_000 // len(sums))  # how often each row was drawn, held for so many resamples at once
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        drawn = rng.multinomial(draws, chances, size=size)
        means[start : start + size] = drawn @ sums / (drawn @ sizes)[:, None]
    return means


def wilson_interval(successes: int, trials: int, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's score interval of one rate (Wilson 1927)."""
    if trials == 0:
        return (0.0, 1.0)
    share = successes / trials
    centre = share + z * z / (2 * trials)
    half = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


def mcnemar(only_first: int, only_second: int) -> float:
    """Exact two-sided p-value of McNemar's test from the two discordant counts (binomial, p = ½)."""
    n = only_first + only_second
    if n == 0:
        return 1.0
    fewer = min(only_first, only_second)
    log_half = n * math.log(0.5)
    tail = sum(math.exp(_log_comb(n, i) + log_half) for i in range(fewer + 1))
    return min(1.0, 2.0 * tail)


def correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Pearson's correlation; 0.0 when either side does not vary."""
    x, y = np.asarray(first, float), np.asarray(second, float)
    if len(x) < 2 or x.std() == 0 or y.std() == 0:
        return 0.0
    return float(np.corrcoef(x, y)[0, 1])


@dataclass(frozen=True, slots=True)
class LengthBias:
    """How far the chosen side of pairs is the longer one, from (length of chosen, length of rejected); ``+`` merges."""

    pairs: int = 0
    longer: int = 0
    shorter: int = 0
    difference: float = 0.0  # summed, chosen minus rejected

    @classmethod
    def of(cls, lengths: Iterable[tuple[float, float]]) -> LengthBias:
        gaps = [chosen - rejected for chosen, rejected in lengths]
        return cls(len(gaps), sum(gap > 0 for gap in gaps), sum(gap < 0 for gap in gaps), sum(gaps))

    def __add__(self, other: LengthBias) -> LengthBias:
        return LengthBias(
            self.pairs + other.pairs,
            self.longer + other.longer,
            self.shorter + other.shorter,
            self.difference + other.difference,
        )

    @property
    def longer_share(self) -> float:
        """Of the pairs of unequal lengths; 0.5 when there are none."""
        unequal = self.longer + self.shorter
        return self.longer / unequal if unequal else 0.5

    @property
    def mean_difference(self) -> float:
        return self.difference / self.pairs if self.pairs else 0.0


def knee(xs: Sequence[float], ys: Sequence[float]) -> float:
    """The x of the point that lies highest above the line from the first to the last, on a logarithmic x axis."""
    if len(xs) < 3 or ys[-1] == ys[0]:
        return xs[0]
    across = [(math.log(x) - math.log(xs[0])) / (math.log(xs[-1]) - math.log(xs[0])) for x in xs]
    up = [(y - ys[0]) / (ys[-1] - ys[0]) for y in ys]
    return xs[max(range(len(xs)), key=lambda i: up[i] - across[i])]


@dataclass(frozen=True, slots=True)
class Moments:
    """Count, mean and summed squares of numbers seen in parts; ``+`` merges two (Chan, Golub and LeVeque 1983)."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, values: Sequence[float] | np.ndarray) -> Moments:
        array = np.asarray(values, float)
        if not len(array):
            return cls()
        return cls(len(array), float(array.mean()), float(((array - array.mean()) ** 2).sum()))

    def __add__(self, other: Moments) -> Moments:
        count = self.count + other.count
        if not count:
            return self
        step = other.mean - self.mean
        mean = self.mean + step * other.count / count
        return Moments(count, mean, self.squares + other.squares + step * step * self.count * other.count / count)

    @property
    def variance(self) -> float:
        """The unbiased variance; NaN for fewer than two numbers."""
        return self.squares / (self.count - 1) if self.count > 1 else math.nan


def entropy(answers: Sequence[Hashable]) -> float:
    """Shannon entropy (nats) of the answers' shares."""
    counts = Counter(answers)
    total = sum(counts.values())
    return -sum(count / total * math.log(count / total) for count in counts.values()) if total else 0.0


def _log_comb(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _check(n: int, c: int, k: int) -> None:
    if not 0 <= c <= n:
        raise ValueError(f"{c} right of {n} candidates; expected 0 ≤ c ≤ n")
    if not 1 <= k <= n:
        raise ValueError(f"k is {k} for {n} candidates; expected 1 ≤ k ≤ n")
