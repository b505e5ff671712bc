"""Where a judge contradicts itself: order effects, and preferences that go in a circle."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Conflicts:
    """``asymmetric``: pairs decided differently by order. ``cycles``: triples where a beats b beats c beats a."""

    pairs: int
    asymmetric: int
    triples: int
    cycles: tuple[tuple[int, int, int], ...]

    @property
    def transitive(self) -> bool:
        """A tournament without a cyclic triple has an order (Kendall and Babington Smith 1940)."""
        return not self.cycles


def conflicts(n: int, first_wins: Mapping[tuple[int, int], float]) -> Conflicts:
    """Contradictions among ``n`` answers; ``first_wins[(a, b)]`` is 1, 0 or ½ for a shown first against b.

    A pair counts as won by a when its orders agree, or when it was asked in one order only.
    """
    beats: dict[tuple[int, int], bool] = {}
    pairs = asymmetric = 0
    for a, b in itertools.combinations(range(n), 2):
        forth, back = first_wins.get((a, b)), first_wins.get((b, a))
        if forth is None and back is None:
            continue
        pairs += 1
        forth = 1 - back if forth is None and back is not None else forth
        back = 1 - forth if back is None and forth is not None else back
        if forth != 1 - back:  # type: ignore[operator]
            asymmetric += 1
        elif forth in (0, 1):
            beats[a, b], beats[b, a] = forth == 1, forth == 0
    triples, cycles = 0, []
    for a, b, c in itertools.combinations(range(n), 3):
        if (a, b) in beats and (b, c) in beats and (a, c) in beats:
            triples += 1
            if beats[a, b] == beats[b, c] == beats[c, a]:
                cycles.append((a, b, c))
    return Conflicts(pairs, asymmetric, triples, tuple(cycles))
