"""Confidence intervals by the bootstrap. The package ``analysis`` and ``bestofn loop`` use this module.

The bootstrap resamples whole queries, because the candidates of one query are not independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RESAMPLES = 2_000
MOST_UNITS = 2_000  # limit on the distinct values, or the groups of rows, that a bootstrap resamples


def bootstrap_mean_interval(
    values: Sequence[float],
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
    counts: Sequence[int] | None = None,
) -> tuple[float, float]:
    """Return the bootstrap percentile interval (low, high) of the mean, from one value per query.

    ``counts`` holds the number of queries that have each value; None means one query per value.
    """
    table = np.asarray(values, np.float64)[:, None]
    return bootstrap_interval(table, lambda means: means[:, 0], level, resamples, seed, counts)


def bootstrap_difference_interval(
    before: Sequence[float] | NDArray[Any],
    after: Sequence[float] | NDArray[Any],
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[float, float]:
    """Return the bootstrap percentile interval of mean(after − before). Both sequences have the same query order."""
    difference = np.asarray(after, np.float64) - np.asarray(before, np.float64)
    return bootstrap_mean_interval(list(difference), level=level, resamples=resamples, seed=seed)


def bootstrap_interval(
    table: NDArray[Any],
    statistic: Callable[[Floats], Floats],
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
    counts: Sequence[int] | NDArray[Any] | None = None,
) -> tuple[float, float]:
    """Return the bootstrap percentile interval of a ``statistic`` of the column means of ``table``.

    ``table`` is (queries × columns); its rows are resampled. ``statistic`` maps the means (resamples × columns) to one
    value per resample. ``counts`` is the number of times that each row occurs; None means once. Returns (NaN, NaN) for
    an empty table.
    """
    if len(table) == 0:
        return (math.nan, math.nan)
    return _percentiles(statistic(resampled_means(table, resamples, seed, counts)), level)


def resampled_means(
    table: NDArray[Any], resamples: int, seed: int, counts: Sequence[int] | NDArray[Any] | None = None
) -> Floats:
    """Resample the rows of ``table`` with replacement and return the column means (resamples × columns).

    ``counts`` is the number of times that each row occurs; None means once. Rows that agree to 12 decimals become one
    unit, and the units are sorted. So the order of the rows does not change the result. A repeated row gives the
    same result as one row with a count. A million queries with few distinct rows need only a small table.

    If there are more than ``MOST_UNITS`` distinct rows, they are assigned at random to ``MOST_UNITS`` groups, and the
    groups are resampled. The mean over groups has the same spread as the mean over rows, and the time does not grow
    with the number of rows.
    """
    rows = np.round(np.asarray(table, np.float64), 12)
    units, places = _distinct_rows(rows)
    weights = np.ones(len(rows)) if counts is None else np.asarray(counts, np.float64)
    per_unit = np.bincount(places.ravel(), weights=weights)
    if len(units) <= MOST_UNITS:
        draws = int(per_unit.sum())
        return _means_of_resamples(units, np.ones(len(units)), per_unit / draws, draws, resamples, seed)
    every = np.repeat(units, per_unit.astype(int), axis=0)
    starts = np.linspace(0, len(every), MOST_UNITS, endpoint=False, dtype=int)
    sums = np.add.reduceat(every[np.random.default_rng(seed).permutation(len(every))], starts, axis=0)
    sizes = np.diff(starts, append=len(every)).astype(np.float64)
    return _means_of_resamples(sums, sizes, np.full(MOST_UNITS, 1.0 / MOST_UNITS), MOST_UNITS, resamples, seed)


def _distinct_rows(rows: Floats) -> tuple[Floats, NDArray[np.intp]]:
    """Return (the distinct rows in ascending order, per row the index of its distinct row)."""
    if rows.shape[1] == 1:  # sorting numbers is much faster than sorting rows
        values, places = np.unique(rows[:, 0], return_inverse=True)
        return values[:, None], places
    return np.unique(rows, axis=0, return_inverse=True)


def _percentiles(values: Floats, level: float) -> tuple[float, float]:
    """Return the lower and the upper quantile of ``values``. The share ``level`` of the values is between the two."""
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(values, [tail, 1.0 - tail])
    return float(low), float(high)


def _means_of_resamples(sums: Floats, sizes: Floats, chances: Floats, draws: int, resamples: int, seed: int) -> Floats:
    """Return the means of resamples (resamples × columns). Each resample draws ``draws`` units with replacement.

    Per unit, ``sums`` has the sum of its rows, ``sizes`` the number of its rows, and ``chances`` its probability.
    """
    rng = np.random.default_rng(seed)
    means: Floats = np.empty((resamples, sums.shape[1]))
    step = max(1, 2_000_000 // len(sums))  # resamples whose counts per unit are in memory at once
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        drawn = rng.multinomial(draws, chances, size=size)
        means[start : start + size] = drawn @ sums / (drawn @ sizes)[:, None]
    return means
