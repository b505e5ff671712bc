"""Pairings: plain functions from one query's judged candidates to its preferences.

Whatever the strategy, a chosen side passed and a rejected side was refuted (``fail``); the two differ in what they say
and in the answer they come to; neither is an error, cut off, refused or a repeat (``pair_rules``). The order of the
candidates never matters, and chance is drawn from ``seed`` and the texts alone.

    best_vs_worst        the highest-scored pass, the lowest-scored fail
    hard_negative        the highest-scored pass, the highest-scored fail
    verified_vs_refuted  passes and fails drawn at random, each used as evenly as can be
    best_vs_random       the highest-scored pass, fails at random (as UltraFeedback was binarised for Zephyr)
    shortest_pass        the shortest pass, fails at random: teaches brevity where it costs nothing
    all_pairs            all c·(n−c), the widest margins first, capped
    ladder               the best pass against fails spread evenly from the worst to the best
    length_balanced      at random, so that the chosen side is the longer in half of the queries
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Sequence

from bestofn.builders.pairing.rules import PairRules, Two, allowed, gap, said, score, sides, tie
from bestofn.builders.records import Judged, Pair

RULES = PairRules()


def best_vs_worst(judged: Sequence[Judged], *, rules: PairRules = RULES, debias_length: bool = False) -> Iterator[Pair]:
    """At most one pair: the highest-scored pass against the lowest-scored fail, of those with a positive margin.

    ``debias_length`` ranks by what is left of the scores after the slope on length within the query is taken away.
    """
    worth = residuals(judged) if debias_length else score
    pairs = _positive(allowed(*sides(judged, rules), rules))
    yield from _first(pairs, lambda pair: (-worth(pair[0]), worth(pair[1])), 1, "best_vs_worst")


def hard_negative(judged: Sequence[Judged], *, rules: PairRules = RULES, debias_length: bool = False) -> Iterator[Pair]:
    """At most one pair: the highest-scored pass against the mistake that looks most like the truth."""
    worth = residuals(judged) if debias_length else score
    pairs = _positive(allowed(*sides(judged, rules), rules))
    yield from _first(pairs, lambda pair: (-worth(pair[0]), -worth(pair[1])), 1, "hard_negative")


def verified_vs_refuted(
    judged: Sequence[Judged], *, rules: PairRules = RULES, pairs_per_query: int = 1, seed: int = 0
) -> Iterator[Pair]:
    """Passes against fails drawn at random, each candidate used as evenly as can be. Scores do not matter."""
    pairs = _shuffled(allowed(*sides(judged, rules), rules), seed)
    used: dict[int, int] = {}
    for _ in range(min(pairs_per_query, len(pairs))):
        pick = min(pairs, key=lambda pair: sum(used.get(side.candidate.index, 0) for side in pair))
        pairs.remove(pick)
        for side in pick:
            used[side.candidate.index] = used.get(side.candidate.index, 0) + 1
        yield _pair(pick, "verified_vs_refuted")


def best_vs_random(
    judged: Sequence[Judged], *, rules: PairRules = RULES, pairs_per_query: int = 1, seed: int = 0
) -> Iterator[Pair]:
    """The highest-scored pass against fails drawn at random."""
    chosen, rejected = sides(judged, rules)
    for pair in _shuffled(allowed(chosen[:1], rejected, rules), seed)[:pairs_per_query]:
        yield _pair(pair, "best_vs_random")


def shortest_pass(
    judged: Sequence[Judged], *, rules: PairRules = RULES, pairs_per_query: int = 1, seed: int = 0
) -> Iterator[Pair]:
    """The shortest pass against fails drawn at random."""
    chosen, rejected = sides(judged, rules)
    shortest = sorted(chosen, key=lambda one: (len(said(one)), tie(one)))[:1]
    for pair in _shuffled(allowed(shortest, rejected, rules), seed)[:pairs_per_query]:
        yield _pair(pair, "shortest_pass")


def all_pairs(judged: Sequence[Judged], *, rules: PairRules = RULES, pairs_per_query: int = 64) -> Iterator[Pair]:
    """Every pass against every fail with a positive margin, the widest first, at most ``pairs_per_query``."""
    pairs = _positive(allowed(*sides(judged, rules), rules))
    yield from _first(pairs, lambda pair: (-gap(pair),), pairs_per_query, "all_pairs")


def ladder(judged: Sequence[Judged], *, rules: PairRules = RULES, pairs_per_query: int = 3) -> Iterator[Pair]:
    """The highest-scored pass against ``pairs_per_query`` fails, evenly from the lowest-scored to the highest."""
    chosen, rejected = sides(judged, rules)
    pairs = sorted(_positive(allowed(chosen[:1], rejected, rules)), key=lambda pair: (score(pair[1]), tie(*pair)))
    for pair in evenly(pairs, pairs_per_query):
        yield _pair(pair, "ladder")


def length_balanced(
    judged: Sequence[Judged], *, rules: PairRules = RULES, pairs_per_query: int = 1, seed: int = 0
) -> Iterator[Pair]:
    """At random, but a coin says which side shall be the longer; where none is, the pair closest to it in length."""
    pairs = _shuffled(allowed(*sides(judged, rules), rules), seed)
    longer = 1 if _draw(pairs, f"coin:{seed}").random() < 0.5 else -1
    pairs.sort(key=lambda pair: max(0, -longer * (len(said(pair[0])) - len(said(pair[1])))))
    for turn in range(min(pairs_per_query, len(pairs))):
        yield _pair(pairs[turn], "length_balanced")


def residuals(judged: Sequence[Judged]) -> Callable[[Judged], float]:
    """Score less its least-squares slope on length among the siblings: what a candidate is worth beyond its length."""
    points = [(len(said(one)), score(one)) for one in judged if one.score.value is not None]
    if len(points) < 3:
        return score
    middle = sum(length for length, _ in points) / len(points)
    spread = sum((length - middle) ** 2 for length, _ in points)
    slope = sum((length - middle) * value for length, value in points) / spread if spread else 0.0
    return lambda one: score(one) - slope * (len(said(one)) - middle)


def evenly(items: Sequence[Two], count: int) -> list[Two]:
    """``count`` of ``items``, spread evenly from the first to the last; all when there are no more."""
    if len(items) <= count:
        return list(items)
    if count == 1:
        return [items[0]]
    return [items[round(step * (len(items) - 1) / (count - 1))] for step in range(count)]


def _first(pairs: Iterable[Two], order: Callable[[Two], tuple[float, ...]], count: int, reason: str) -> Iterator[Pair]:
    for pair in sorted(pairs, key=lambda pair: (order(pair), tie(*pair)))[:count]:
        yield _pair(pair, reason)


def _positive(pairs: Iterable[Two]) -> list[Two]:
    return [pair for pair in pairs if gap(pair) > 0]


def _shuffled(pairs: list[Two], seed: int) -> list[Two]:
    ordered = sorted(pairs, key=lambda pair: tie(*pair))
    _draw(ordered, str(seed)).shuffle(ordered)
    return ordered


def _draw(pairs: Sequence[Two], seed: str) -> random.Random:
    """Chance from the seed and from what the pairs say."""
    texts = sorted({said(side) for pair in pairs for side in pair})
    digest = hashlib.sha256("\0".join([seed, *texts]).encode("utf-8", "replace")).digest()
    return random.Random(digest)


def _pair(sides_: Two, reason: str) -> Pair:
    difference = gap(sides_)
    margin = difference if difference != float("-inf") else 0.0
    return Pair(sides_[0].candidate.index, sides_[1].candidate.index, margin, reason)
