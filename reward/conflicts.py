"""Preference cycles of a judge: a beats b, b beats c, c beats a. ``pairwise_reward`` reports their number."""

from __future__ import annotations

import itertools
from collections.abc import Mapping


def cycles(n: int, first_wins: Mapping[tuple[int, int], float]) -> list[tuple[int, int, int]]:
    """The cyclic triples among ``n`` answers; ``first_wins[(a, b)]`` is 1, 0 or ½ for a, shown first, against b.

    Only pairs with a winner count: both orders agree, or one order was asked. A set of results without a cyclic
    triple has a consistent order (Kendall and Babington Smith 1940).
    """
    beats = _winners(n, first_wins)
    return [
        (a, b, c)
        for a, b, c in itertools.combinations(range(n), 3)
        if (a, b) in beats and (b, c) in beats and (a, c) in beats and beats[a, b] == beats[b, c] == beats[c, a]
    ]


def _winners(n: int, first_wins: Mapping[tuple[int, int], float]) -> dict[tuple[int, int], bool]:
    """Whether a beats b, for both orders of every pair with a winner."""
    beats: dict[tuple[int, int], bool] = {}
    for a, b in itertools.combinations(range(n), 2):
        results = [first_wins[a, b]] if (a, b) in first_wins else []
        results += [1 - first_wins[b, a]] if (b, a) in first_wins else []
        if results in ([0], [1], [0, 0], [1, 1]):
            beats[a, b], beats[b, a] = results[0] == 1, results[0] == 0
    return beats
