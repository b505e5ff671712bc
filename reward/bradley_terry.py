"""Strengths from comparisons."""

from __future__ import annotations

import math
from collections.abc import Sequence


def strengths(wins: Sequence[Sequence[float]], prior: float = 0.1, rounds: int = 200) -> list[float]:
    """Log-strengths, centred on 0, of a Bradley–Terry model fitted to ``wins[i][j]``, how often i beat j (tie: ½).

    Zermelo's iteration in its minorise-maximise form (Hunter 2004). ``prior`` wins either way of each pair keep an
    unbeaten side finite and the comparison graph connected.
    """
    n = len(wins)
    if any(len(row) != n for row in wins):
        raise ValueError(f"wins has rows of {[len(row) for row in wins]}; expected a square table of {n}")
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
    """The chance of each to beat a drawn sibling, 0 to 1, by the fitted strengths; 0.5 for one alone."""
    fitted = strengths(wins, prior)
    others = len(fitted) - 1
    if others < 1:
        return [0.5] * len(fitted)
    return [
        sum(1 / (1 + math.exp(theirs - mine)) for j, theirs in enumerate(fitted) if j != i) / others
        for i, mine in enumerate(fitted)
    ]
