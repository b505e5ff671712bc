"""Descriptive statistics: moments, the length bias of pairs, and correlation.

The results for several files can be merged. The package ``analysis`` uses this module for the run figures and the
judge report.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Moments:
    """Count, mean and sum of squared deviations of numbers; ``+`` merges two samples (Chan, Golub and LeVeque 1983)."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, values: Sequence[float] | NDArray[Any]) -> Moments:
        """Compute the moments of ``values``."""
        array = np.asarray(values, np.float64)
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


@dataclass(frozen=True, slots=True)
class LengthBias:
    """Counts of pairs whose chosen side is longer or shorter, and the sum of differences; ``+`` merges two sets."""

    pairs: int = 0
    longer: int = 0
    shorter: int = 0
    difference: float = 0.0  # sum of (length of chosen − length of rejected)

    @classmethod
    def of(cls, lengths: Iterable[tuple[float, float]]) -> LengthBias:
        """Compute the bias from (length of chosen, length of rejected) per pair."""
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
        """The share of pairs in which the chosen side is longer; 0.5 if all pairs have sides of equal length.

        Pairs with sides of equal length are not counted.
        """
        unequal = self.longer + self.shorter
        return self.longer / unequal if unequal else 0.5

    @property
    def mean_difference(self) -> float:
        """The mean of (length of chosen − length of rejected); 0.0 if there are no pairs."""
        return self.difference / self.pairs if self.pairs else 0.0


def correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Pearson's correlation of two sequences; 0.0 if a sequence is constant or shorter than two."""
    x, y = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if len(x) < 2 or x.std() == 0 or y.std() == 0:
        return 0.0
    return float(np.corrcoef(x, y)[0, 1])


def share(part: float, whole: int) -> float | None:
    """Return ``part`` / ``whole``; None if ``whole`` is 0."""
    return part / whole if whole else None
