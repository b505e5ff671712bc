"""What came out of a run, as plain numbers: what ``bestofn inspect`` prints and the card repeats."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bestofn.builders.statistics import descriptive, estimators, intervals
from bestofn.builders.tables import candidate_table
from bestofn.builders.tables.candidate_table import CandidateTable, Group
from bestofn.builders.tables.parquet_files import file_side, table_files

SHOWN_METADATA = ("model", "num_candidates", "temperature", "max_tokens", "splits", "generated_at", "persona", "notes")


class QueryTotals(NamedTuple):
    """What the figures take from one query. Queries are of few kinds, so that a million of them are a small table."""

    split: int  # place in the list of splits
    candidates: int
    verified: int
    sampled: int
    first: float  # whether candidate 0 passed; NaN without candidates
    any_right: float  # whether a sample passed; NaN without samples
    picked: float  # truth of the best by reward; NaN without rewards
    conclusive: int  # candidates that an estimate of pass@k counts
    conclusive_right: int


def summarize(path: Path, *, resamples: int = intervals.RESAMPLES) -> dict[str, Any]:
    """The figures of the run at ``path`` (a folder or a Parquet file); JSON-ready, 95 % intervals by query."""
    table = candidate_table.read(path)
    splits: dict[str, int] = {}
    outcomes: Counter[str] = Counter()
    indices = ByIndex()
    kinds = Counter(_totals(table.groups(), splits, outcomes, indices))
    totals = np.array(list(kinds), float).reshape(-1, len(QueryTotals._fields))
    queries = {name: totals[:, place] for place, name in enumerate(QueryTotals._fields)}
    queries["queries"] = np.fromiter(kinds.values(), int)
    n = int(queries["sampled"].max(initial=0))
    return {
        "run": table.name,
        "metadata": {key: table.metadata[key] for key in SHOWN_METADATA if key in table.metadata},
        "n": n,
        "records": sum(outcomes.values()),
        "outcomes": dict(outcomes),
        **figures(queries, n, resamples),
        "by_split": {
            split: figures({name: of[queries["split"] == place] for name, of in queries.items()}, n, resamples)
            for split, place in sorted(splits.items())
        },
        "by_index": indices.rates(),
        "pass_at": pass_curve(queries, resamples),
        **flat_figures(table),
        "pairs": pairs(path),
    }


def _totals(
    groups: Iterable[Group], splits: dict[str, int], outcomes: Counter[str], indices: ByIndex
) -> Iterator[QueryTotals]:
    """The totals of each query; what is counted over all goes into the other arguments on the way."""
    for group in groups:
        outcomes.update(group.outcomes)
        indices.add(group)
        sampled, conclusive, picked = group.sampled, group.conclusive, picked_share(group, group.sampled)
        yield QueryTotals(
            split=splits.setdefault(group.split, len(splits)),
            candidates=len(group.outcomes),
            verified=group.outcomes.count("pass"),
            sampled=len(sampled),
            first=float(group.right(0)) if group.outcomes else math.nan,
            any_right=float(any(map(group.right, sampled))) if sampled else math.nan,
            picked=math.nan if picked is None else picked,
            conclusive=len(conclusive),
            conclusive_right=sum(map(group.right, conclusive)),
        )


def figures(queries: Mapping[str, np.ndarray], n: int, resamples: int) -> dict[str, Any]:
    """Rates of some queries. ``first``: candidate 0 is right; ``best_of_n``: any is; ``picked``: the best by reward.

    ``queries`` has a column a field of ``QueryTotals``, a row a kind of query, and ``queries``: how many are of it.
    The interval of ``rate`` is by query, for the candidates of one query are not independent.
    """
    counts = queries["queries"]
    count = int(counts.sum())
    candidates, verified = int(counts @ queries["candidates"]), int(counts @ queries["verified"])
    return {
        "queries": count,
        "candidates": candidates,
        "verified": verified,
        "rate": _share(verified, candidates),
        "rate_interval": rate_interval(queries, resamples),
        "first": _mean(queries["first"], counts),
        "best_of_n": _mean(queries["any_right"], counts),
        "picked": _mean(queries["picked"], counts),
        "coverage": _share(int(counts[queries["sampled"] == n].sum()), count),
    }


def rate_interval(queries: Mapping[str, np.ndarray], resamples: int) -> tuple[float, float] | None:
    """95 % of verified candidates among all, whole queries resampled; None when there are none."""
    if not len(queries["candidates"]):
        return None
    both = np.stack([queries["verified"], queries["candidates"]], axis=1)
    return intervals.bootstrap_interval(
        both, lambda means: means[:, 0] / means[:, 1], resamples=resamples, counts=queries["queries"]
    )


def picked_share(group: Group, places: Sequence[int]) -> float | None:
    """Truth of the highest-rewarded of these; ties count by the share of passes among them. None without rewards."""
    scored = [(group.rewards[place], group.right(place)) for place in places]
    values = [value for value, _ in scored if value is not None]
    if not values:
        return None
    tied = [right for value, right in scored if value == max(values)]
    return sum(tied) / len(tied)


class ByIndex:
    """Verified by candidate index: do later samples do worse than the first?"""

    def __init__(self) -> None:
        self._seen: Counter[int] = Counter()
        self._right: Counter[int] = Counter()

    def add(self, group: Group) -> None:
        for place, index in enumerate(group.indices):
            self._seen[index] += 1
            self._right[index] += group.right(place)

    def rates(self) -> dict[int, dict[str, Any]]:
        return {
            index: {"records": seen, "verified": self._right[index], "rate": self._right[index] / seen}
            for index, seen in sorted(self._seen.items())
        }


def pass_curve(queries: Mapping[str, np.ndarray], resamples: int) -> list[dict[str, float]]:
    """pass@k of each query's conclusive samples, with intervals by query; ``queries`` as of ``figures``."""
    pools: Counter[tuple[int, int]] = Counter()
    columns = (queries[name].astype(int).tolist() for name in ("conclusive", "conclusive_right", "queries"))
    for n, right, count in zip(*columns, strict=True):
        pools[n, right] += count
    return [point._asdict() for point in estimators.pass_curve(pools, resamples=resamples)]


FLAT = (
    "is_verified", "refusal_is_refusal", "refusal_type", "quality_answer_length", "quality_is_empty",
    "quality_is_short_answer", "finish_reason", "is_duplicate_of", "generation_error", "cost_usd", "latency_s",
    "usage_prompt_tokens", "usage_completion_tokens",
)  # fmt: skip


def flat_figures(table: CandidateTable) -> dict[str, Any]:
    """Refusals, quality and cost over all candidates, one pass; ``usd`` is None when no candidate has a price."""
    kinds: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    sums: dict[str, float] = defaultdict(float)
    known: Counter[str] = Counter()
    for batch in table.batches(FLAT):
        flags = zip(batch["refusal_is_refusal"], batch["refusal_type"], strict=True)
        kinds.update(kind or "unnamed" for flag, kind in flags if flag)
        counts["truncated"] += batch["finish_reason"].count("length")
        counts["repeats"] += sum(value is not None for value in batch["is_duplicate_of"])
        for name in ("is_verified", "quality_is_empty", "quality_is_short_answer", "generation_error"):
            counts[name] += sum(map(bool, batch[name]))
        for name in (
            "quality_answer_length",
            "cost_usd",
            "latency_s",
            "usage_prompt_tokens",
            "usage_completion_tokens",
        ):
            there = [value for value in batch[name] if value is not None]
            sums[name] += sum(there)
            known[name] += len(there)

    def mean(name: str) -> float | None:
        return _share(sums[name], known[name])

    priced, verified = bool(known["cost_usd"]), counts["is_verified"]
    return {
        "refusals": {"count": sum(kinds.values()), "by_type": dict(kinds)},
        "quality": {
            "empty": counts["quality_is_empty"],
            "short": counts["quality_is_short_answer"],
            "truncated": counts["truncated"],
            "repeats": counts["repeats"],
            "errors": counts["generation_error"],
            "mean_characters": mean("quality_answer_length"),
        },
        "cost": {
            "usd": sums["cost_usd"] if priced else None,
            "usd_per_verified": sums["cost_usd"] / verified if priced and verified else None,
            "prompt_tokens": round(sums["usage_prompt_tokens"]),
            "completion_tokens": round(sums["usage_completion_tokens"]),
            "mean_seconds": mean("latency_s"),
        },
    }


def pairs(path: Path) -> dict[str, Any] | None:
    """The pairs of a run folder: how many, their margins, and how far the longer side is the chosen one."""
    import pyarrow.parquet as pq

    files = table_files(path / "dpo")
    if not files:
        return None
    counts: dict[str, int] = {}
    margins = descriptive.Moments()
    bias = descriptive.LengthBias()
    reasons: Counter[str] = Counter()
    for file in files:
        with pq.ParquetFile(file) as table:
            side = file_side(file)
            counts[side] = counts.get(side, 0) + table.metadata.num_rows
            for batch in table.iter_batches(batch_size=256, columns=["chosen", "rejected", "margin", "reason"]):
                rows = batch.to_pylist()
                margins += descriptive.Moments.of([row["margin"] for row in rows])
                reasons.update(row["reason"] for row in rows)
                bias += descriptive.LengthBias.of(
                    (_characters(row["chosen"]), _characters(row["rejected"])) for row in rows
                )
    return {
        **counts,
        "total": sum(counts.values()),
        "mean_margin": margins.mean if margins.count else None,
        "chosen_longer": bias.longer_share,
        "mean_length_difference": bias.mean_difference,
        "by_reason": dict(reasons),
    }


def _characters(messages: Sequence[Any]) -> int:
    """Characters of a side's texts; messages are JSON texts as Parquet holds them."""
    read = [json.loads(message) if isinstance(message, str | bytes) else message for message in messages]
    return sum(len(message.get("content") or "") for message in read)


def _mean(values: np.ndarray, counts: np.ndarray) -> float | None:
    """Of the queries that have a value."""
    there = ~np.isnan(values)
    return _share(float(values[there] @ counts[there]), int(counts[there].sum()))


def _share(part: float, whole: int) -> float | None:
    return part / whole if whole else None
