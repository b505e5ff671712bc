"""Helpers of the pairing strategies: they sort, shuffle and select possible pairs, and make the pair records."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Sequence

from bestofn.builders.pairing.rules import PairSides, margin_of, stored_margin, tie_break_key, trace_text
from bestofn.builders.records import Pair


def first_pairs(
    pairs: Iterable[PairSides], order: Callable[[PairSides], tuple[float, ...]], count: int, reason: str
) -> Iterator[Pair]:
    """Yield the records of the first ``count`` pairs in ascending ``order``. The texts decide ties.

    ``reason`` is the name of the strategy, which each record contains.
    """
    for pair in sorted(pairs, key=lambda pair: (order(pair), tie_break_key(*pair)))[:count]:
        yield pair_of(pair, reason)


def with_positive_margin(pairs: Iterable[PairSides]) -> list[PairSides]:
    """Return the pairs whose chosen side has the higher score."""
    return [pair for pair in pairs if margin_of(pair) > 0]


def shuffled(pairs: Iterable[PairSides], seed: int) -> list[PairSides]:
    """Return the pairs in a random order that depends only on ``seed`` and the texts of the pairs."""
    ordered = sorted(pairs, key=lambda pair: tie_break_key(*pair))
    seeded_random(ordered, str(seed)).shuffle(ordered)
    return ordered


def seeded_random(pairs: Sequence[PairSides], seed: str) -> random.Random:
    """Return a random generator whose seed depends on ``seed`` and the texts of the pairs."""
    texts = sorted({trace_text(side) for pair in pairs for side in pair})
    digest = hashlib.sha256("\0".join([seed, *texts]).encode("utf-8", "replace")).digest()
    return random.Random(digest)


def pair_of(sides: PairSides, reason: str) -> Pair:
    """Return the record of one pair: the indices of both sides, the margin, and ``reason``, the strategy's name."""
    return Pair(sides[0].candidate.index, sides[1].candidate.index, stored_margin(sides), reason)
