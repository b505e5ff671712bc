"""The figures of a run, from one pass over its rows: counts a query, never the answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from builders import statistics
from builders.records import content_text

OUTCOMES = ("pass", "fail", "abstain", "error")


@dataclass(frozen=True, slots=True)
class Pool:
    """The samples of one query that were judged either way, drawn whatever was found before."""

    passes: tuple[bool, ...]
    scored: tuple[tuple[float, bool], ...]  # score and pass of those that have a score


@dataclass
class Figures:
    """What one pass over the rows leaves: counts a query, never the answers."""

    outcomes: Counter[str] = field(default_factory=Counter)
    by_split: dict[str, Counter[str]] = field(default_factory=dict)
    by_index: dict[int, Counter[str]] = field(default_factory=dict)
    pools: dict[str, list[Pool]] = field(default_factory=dict)  # split -> one a query
    troubles: Counter[str] = field(default_factory=Counter)  # why candidates could not be judged
    margins: list[float] = field(default_factory=list)
    lengths: dict[str, list[float]] = field(default_factory=lambda: {"chosen": [], "rejected": []})
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
            if outcome in ("pass", "fail") and drawn_anyway(candidate)
        ]
        scored = tuple((value, right) for value, right in counted if value is not None)
        self.pools.setdefault(split, []).append(Pool(tuple(right for _, right in counted), scored))
        self.troubles.update(v["explanation"] for v in row["verdicts"] if v["outcome"] == "error")
        by_index = {candidate["index"]: candidate for candidate in row["candidates"]}
        for pair in row["pairs"]:
            self.pairs += 1
            self.margins.append(pair["margin"])
            for side in ("chosen", "rejected"):
                self.lengths[side].append(float(len(_answer(by_index[pair[side]]))))

    def pass_at(self, split: str | None = None) -> list[tuple[int, float, float, float]]:
        """(k, pass@k, low, high) for k = 1, 2, 4 …, with a 95 % interval by query.

        Only samples with a conclusive verdict count, and of adaptive sampling those drawn whatever was found. The
        largest k is one that 95 % of the queries reach; the rest are left out of the whole curve, so that every k
        speaks of the same queries.
        """
        pools = self._full(split)
        largest = min((len(pool.passes) for pool in pools), default=0)
        sizes = sorted({k for k in (1, 2, 4, 8, 16, 32, 64) if k <= largest} | {largest} - {0})
        curve = []
        for k in sizes:
            values = [statistics.pass_at_k(len(pool.passes), sum(pool.passes), k) for pool in pools]
            low, high = statistics.bootstrap_mean_interval(values)
            curve.append((k, sum(values) / len(values), low, high))
        return curve

    def best_of(self, k: int, split: str | None = None) -> tuple[float, float, float] | None:
        """Share right when the reward picks the best of ``k``, with its 95 % interval, over the queries of ``pass_at``.

        None when no such query has ``k`` scores. At ``k`` = 1 it is pass@1.
        """
        values = [
            statistics.best_of_k([(value, float(right)) for value, right in pool.scored], k)
            for pool in self._full(split)
            if len(pool.scored) >= k
        ]
        return (sum(values) / len(values), *statistics.bootstrap_mean_interval(values)) if values else None

    def picked(self, split: str | None = None) -> float:
        """Share of queries whose highest-scored conclusive sample passes; ties count by their share of passes."""
        shares = [picked_share(pool.scored) for pool in self._pools(split) if pool.scored]
        return sum(shares) / len(shares) if shares else 0.0

    def pass_rates(self) -> list[float]:
        """The share of passes among each query's conclusive samples: how hard the queries are."""
        return [sum(pool.passes) / len(pool.passes) for pool in self._pools(None)]

    def _pools(self, split: str | None) -> list[Pool]:
        return [pool for name, part in self.pools.items() if split in (None, name) for pool in part if pool.passes]

    def _full(self, split: str | None) -> list[Pool]:
        """The pools as large as 95 % of them are, or larger."""
        pools = self._pools(split)
        if not pools:
            return []
        largest = sorted(len(pool.passes) for pool in pools)[int(0.05 * len(pools))]
        return [pool for pool in pools if len(pool.passes) >= largest]


def drawn_anyway(candidate: Mapping[str, Any]) -> bool:
    """Whether ``candidate`` is a sample drawn whatever was found before: what an estimate of pass@k may count."""
    fixed = ((candidate.get("detail") or {}).get("adaptive") or {}).get("n_fixed")
    return candidate.get("arm") != "greedy" and (fixed is None or candidate["index"] < fixed)


def picked_share(scored: Sequence[tuple[float, bool]]) -> float:
    """Expected truth of the candidate with the highest score, ties drawn at random."""
    top = max(value for value, _ in scored)
    tied = [right for value, right in scored if value == top]
    return sum(tied) / len(tied)


def _answer(candidate: Mapping[str, Any]) -> str:
    return "".join(content_text(message.get("content")) for message in candidate["messages"])
