"""The figures of a run, from one pass over its rows: counts a query, never the answers."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bestofn.builders.records import content_text
from bestofn.builders.statistics import estimators, intervals
from bestofn.builders.statistics.eligibility import counts_towards_pass_at_k, n_fixed

OUTCOMES = ("pass", "fail", "abstain", "error")


@dataclass(frozen=True, slots=True)
class Pool:
    """What counts of one query's samples that were judged either way, drawn whatever was found before.

    ``order`` has one entry for each score that occurs, the lowest first: (how many have it, how many of them pass).
    Nothing else of the scores matters, so that queries are of few kinds and a million of them are a small table.
    """

    judged: int
    passes: int
    order: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, samples: Sequence[tuple[float | None, bool]]) -> Pool:
        """Of (score, whether it passed) of each sample; a score may be missing."""
        tied: dict[float, list[bool]] = {}
        for score, right in samples:
            if score is not None:
                tied.setdefault(score, []).append(right)
        order = tuple((len(tied[score]), sum(tied[score])) for score in sorted(tied))
        return cls(len(samples), sum(right for _, right in samples), order)

    @property
    def scored(self) -> list[tuple[float, float]]:
        """(place in the order of scores, share right among those of that place) of each sample with a score."""
        return [(place, right / size) for place, (size, right) in enumerate(self.order) for _ in range(size)]

    @property
    def picked(self) -> float:
        """Expected truth of the sample with the highest score, ties drawn at random. Raises without scores."""
        size, right = self.order[-1]
        return right / size


class EvenSample:
    """At most ``most`` of the items that were added, each with the same chance (Vitter 1985, algorithm R)."""

    def __init__(self, most: int = 20_000, seed: int = 0) -> None:
        self.items: list[Any] = []
        self._most, self._added, self._random = most, 0, random.Random(seed)

    def add(self, item: Any) -> None:
        self._added += 1
        if len(self.items) < self._most:
            self.items.append(item)
        elif (place := self._random.randrange(self._added)) < self._most:
            self.items[place] = item


@dataclass
class Figures:
    """What one pass over the rows leaves: counts of queries by kind, never the answers, in constant memory."""

    outcomes: Counter[str] = field(default_factory=Counter)
    by_split: dict[str, Counter[str]] = field(default_factory=dict)
    by_index: dict[int, Counter[str]] = field(default_factory=dict)
    pools: dict[str, Counter[Pool]] = field(default_factory=dict)  # split -> queries by what became of them
    troubles: Counter[str] = field(default_factory=Counter)  # why candidates could not be judged
    sides: EvenSample = field(default_factory=EvenSample)  # of the pairs: margin, characters chosen and rejected
    queries: int = 0
    pairs: int = 0
    usd: float = 0.0
    tokens: int = 0
    verified: int = 0

    def add(self, row: Mapping[str, Any]) -> None:
        """Count one nested row."""
        split = row["split"]
        outcomes = [verdict["outcome"] for verdict in row["verdicts"]]
        self.queries += 1
        self.outcomes.update(outcomes)
        self.by_split.setdefault(split, Counter()).update(outcomes)
        for candidate, outcome in zip(row["candidates"], outcomes, strict=True):
            self.by_index.setdefault(candidate["index"], Counter())[outcome] += 1
            usage = candidate["usage"] or {}
            self.tokens += (usage.get("prompt") or 0) + (usage.get("completion") or 0)
            self.usd += candidate["cost_usd"] or 0.0
        passes = outcomes.count("pass")
        self.verified += passes
        counted = [
            (score["value"], outcome == "pass")
            for candidate, score, outcome in zip(row["candidates"], row["scores"], outcomes, strict=True)
            if counts_towards_pass_at_k(outcome, candidate.get("arm"), candidate["index"], n_fixed(candidate))
        ]
        self.pools.setdefault(split, Counter())[Pool.of(counted)] += 1
        self.troubles.update(v["explanation"] for v in row["verdicts"] if v["outcome"] == "error")
        by_index = {candidate["index"]: candidate for candidate in row["candidates"]}
        for pair in row["pairs"]:
            self.pairs += 1
            chosen, rejected = (len(_answer(by_index[pair[side]])) for side in ("chosen", "rejected"))
            self.sides.add((pair["margin"], chosen, rejected))

    def pass_at(self, split: str | None = None) -> list[estimators.CurvePoint]:
        """pass@k for k = 1, 2, 4 …, with a 95 % interval by query.

        Only samples with a conclusive verdict count, and of adaptive sampling those drawn whatever was found. The
        largest k is one that 95 % of the queries reach; the rest are left out of the whole curve, so that every k
        speaks of the same queries.
        """
        counts: Counter[tuple[int, int]] = Counter()
        for pool, count in self._pools(split).items():
            counts[pool.judged, pool.passes] += count
        return estimators.pass_curve(counts)

    def best_of(self, k: int, split: str | None = None) -> estimators.CurvePoint | None:
        """Share right when the reward picks the best of ``k``, with its 95 % interval, over the queries of ``pass_at``.

        None when no such query has ``k`` scores. At ``k`` = 1 it is pass@1.
        """
        pools = self._pools(split)
        sizes: Counter[int] = Counter()
        for pool, count in pools.items():
            sizes[pool.judged] += count
        largest, values = estimators.largest_k(sizes), intervals.RunningMean()
        for pool, count in pools.items():
            if pool.judged >= largest and len(scored := pool.scored) >= k:
                values.add(estimators.best_of_k(scored, k), count)
        return estimators.CurvePoint(k, values.mean, *values.interval(), values.count) if values.count else None

    def picked(self, split: str | None = None) -> float:
        """Share of queries whose highest-scored conclusive sample passes; ties count by their share of passes."""
        shares = [(pool.picked, count) for pool, count in self._pools(split).items() if pool.order]
        return sum(share * count for share, count in shares) / max(sum(count for _, count in shares), 1)

    def pass_rates(self) -> Counter[float]:
        """The share of passes among a query's conclusive samples -> queries: how hard they are."""
        rates: Counter[float] = Counter()
        for pool, count in self._pools(None).items():
            rates[pool.passes / pool.judged] += count
        return rates

    def _pools(self, split: str | None) -> Counter[Pool]:
        found: Counter[Pool] = Counter()
        for name, part in self.pools.items():
            if split in (None, name):
                found.update({pool: count for pool, count in part.items() if pool.judged})
        return found


def _answer(candidate: Mapping[str, Any]) -> str:
    return "".join(content_text(message.get("content")) for message in candidate["messages"])
