"""Estimates the strengths of answers from pairwise comparisons. Used by ``pairwise_reward`` and ``listwise_reward``."""

from __future__ import annotations

import math
from collections.abc import Sequence


def strengths(wins: Sequence[Sequence[float]], prior: float = 0.1, rounds: int = 200) -> list[float]:
    """Fit a Bradley–Terry model to ``wins`` and return the logarithm of each strength; the mean is 0.

    ``wins[i][j]`` is how often answer i beat answer j; a tie counts ½ for both. The function uses Zermelo's iteration
    in its minorise-maximise form (Hunter 2004) with at most ``rounds`` iterations. ``prior`` wins are added to both
    sides of each pair. Therefore an answer that always wins has a finite strength, and the comparison graph is
    connected. Raises ``ValueError`` if ``wins`` is not square.
    """
    n = len(wins)
    if any(len(row) != n for row in wins):
        raise ValueError(f"wins has {n} rows of lengths {[len(row) for row in wins]}; expected a square table")
    worth = [1.0] * n
    if n < 2:
        return [0.0] * n
    total = [sum(wins[i][j] + prior for j in range(n) if j != i) for i in range(n)]
    for _ in range(rounds):
        new = [
            total[i] / sum((wins[i][j] + wins[j][i] + 2 * prior) / (worth[i] + worth[j]) for j in range(n) if j != i)
            for i in range(n)
        ]
        mean = math.exp(math.fsum(map(math.log, new)) / n)
        new = [value / mean for value in new]
        settled = max(abs(math.log(a / b)) for a, b in zip(new, worth, strict=True)) < 1e-9
        worth = new
        if settled:
            break
    return [math.log(value) for value in worth]


def win_chances(wins: Sequence[Sequence[float]], prior: float = 0.1) -> list[float]:
    """Return the probability that each answer beats a random other answer; 0.5 for a single answer."""
    fitted = strengths(wins, prior)
    others = len(fitted) - 1
    if others < 1:
        return [0.5] * len(fitted)
    return [
        sum(1 / (1 + math.exp(theirs - mine)) for j, theirs in enumerate(fitted) if j != i) / others
        for i, mine in enumerate(fitted)
    ]
