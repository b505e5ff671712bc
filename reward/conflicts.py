"""Finds preference cycles of a judge: a beats b, b beats c, c beats a.

``pairwise_reward`` reports the number of cycles.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping


def cycles(n: int, first_wins: Mapping[tuple[int, int], float]) -> list[tuple[int, int, int]]:
    """Return the triples of answers whose comparisons form a cycle.

    ``first_wins[(a, b)]`` is the result when answer a is shown first: 1 if a wins, 0 if b wins, ½ for a tie. Each pair
    has one or two results. The pair has a winner if the same answer wins in every result; otherwise the pair is
    ignored. If every pair has a winner and there is no cyclic triple, the answers can be ranked consistently (Kendall
    and Babington Smith 1940).
    """
    beats = _winners(n, first_wins)
    return [
        (a, b, c)
        for a, b, c in itertools.combinations(range(n), 3)
        if (a, b) in beats and (b, c) in beats and (a, c) in beats and beats[a, b] == beats[b, c] == beats[c, a]
    ]


def _winners(n: int, first_wins: Mapping[tuple[int, int], float]) -> dict[tuple[int, int], bool]:
    """Map (a, b) to True if answer a beats answer b, otherwise to False.

    For each pair with a winner, both (a, b) and (b, a) are keys. Pairs without a winner are left out.
    """
    beats: dict[tuple[int, int], bool] = {}
    for a, b in itertools.combinations(range(n), 2):
        results = [first_wins[a, b]] if (a, b) in first_wins else []
        results += [1 - first_wins[b, a]] if (b, a) in first_wins else []
        if results in ([0], [1], [0, 0], [1, 1]):
            beats[a, b], beats[b, a] = results[0] == 1, results[0] == 0
    return beats
