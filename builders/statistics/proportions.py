"""Wilson's interval of a rate, and McNemar's test of two rates.

The package ``analysis`` and adaptive sampling (``stages.adaptive``) use this module. This module does not import numpy,
so that a build starts without numpy.
"""

from __future__ import annotations

import math


def wilson_interval(successes: float, trials: float, z: float = 1.959964) -> tuple[float, float]:
    """Return Wilson's score interval of a rate (Wilson 1927); (0, 1) if there are no trials. ``z`` is 1.96 for 95 %.

    ``successes`` and ``trials`` may be fractions: weighted successes, and an effective number of trials.
    """
    if trials == 0:
        return (0.0, 1.0)
    share = successes / trials
    centre = share + z * z / (2 * trials)
    half = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the exact two-sided p-value of McNemar's test from the two discordant counts (binomial, p = ½)."""
    n = only_first + only_second
    if n == 0:
        return 1.0
    fewer = min(only_first, only_second)
    log_half = n * math.log(0.5)
    tail = sum(math.exp(_log_comb(n, i) + log_half) for i in range(fewer + 1))
    return min(1.0, 2.0 * tail)


def _log_comb(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
