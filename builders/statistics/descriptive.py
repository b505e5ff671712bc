"""Descriptive statistics: histograms, correlation and shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike

OUTLIERS = (0.01, 0.05)  # shares of the values that the outer bins of a histogram may take, at each end


class Histogram(TypedDict):
    """The shares of values in bins of equal width from ``low`` to ``high``, per group; groups have the same bins.

    ``beyond`` of the ``values`` are outside and counted in the outer bins.
    """

    low: float
    high: float
    shares: dict[str, list[float]]
    values: int
    beyond: int


def histogram(
    groups: Mapping[str, ArrayLike], *, bins: int = 20, span: tuple[float, float] | None = None
) -> Histogram | None:
    """Return the histogram of ``groups``; None if there are no values.

    If ``span`` is None, the bins cover the range of ``without_outliers``.
    """
    arrays = {name: np.asarray(values, np.float64) for name, values in groups.items()}
    everything = np.concatenate([np.zeros(0), *arrays.values()])
    if not len(everything):
        return None
    low, high = span or without_outliers(everything.tolist())
    beyond = int(np.count_nonzero((everything < low) | (everything > high)))
    if low == high:
        low, high = low - 0.5, high + 0.5
    counts = {name: np.histogram(np.clip(one, low, high), bins, (low, high))[0] for name, one in arrays.items()}
    shares = {name: (count / max(count.sum(), 1)).tolist() for name, count in counts.items()}
    return {"low": low, "high": high, "shares": shares, "values": len(everything), "beyond": beyond}


def without_outliers(values: Sequence[float]) -> tuple[float, float]:
    """Return the range of ``values``. Outliers that would take more than half of the range are left out.

    Outliers are at most 5 % of the values at each end.
    """
    ordered = sorted(values)
    low, high = ordered[0], ordered[-1]
    for share in OUTLIERS:
        inner_low, inner_high = ordered[int(share * len(ordered))], ordered[-1 - int(share * len(ordered))]
        if inner_low < inner_high and high - low > 2 * (inner_high - inner_low):
            return inner_low, inner_high
    return low, high


def correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Pearson's correlation of two sequences; 0.0 if a sequence is constant or shorter than two."""
    x, y = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if len(x) < 2 or x.std() == 0 or y.std() == 0:
        return 0.0
    return float(np.corrcoef(x, y)[0, 1])


def share(part: float, whole: int) -> float | None:
    """Return ``part`` / ``whole``; None if ``whole`` is 0."""
    return part / whole if whole else None
