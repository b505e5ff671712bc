"""What came out of a run, as plain numbers: what ``bestofn inspect`` prints and the card repeats."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from builders import candidate_table, statistics
from builders.candidate_table import CandidateTable, Group

POWERS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
SHOWN_METADATA = ("model", "num_candidates", "temperature", "max_tokens", "splits", "generated_at", "persona", "notes")


def summarize(path: Path, *, resamples: int = statistics.RESAMPLES) -> dict[str, Any]:
    """The figures of the run at ``path`` (a folder or a Parquet file); JSON-ready, 95 % intervals by query."""
    table = candidate_table.read(path)
    groups = list(table.groups())
    outcomes = Counter(outcome for group in groups for outcome in group.outcomes)
    n = max((len(group.sampled) for group in groups), default=0)
    return {
        "run": table.name,
        "metadata": {key: table.metadata[key] for key in SHOWN_METADATA if key in table.metadata},
        "n": n,
        "records": len(table),
        "outcomes": dict(outcomes),
        **figures(groups, n, resamples),
        "by_split": {
            split: figures([group for group in groups if group.split == split], n, resamples)
            for split in sorted({group.split for group in groups})
        },
        "by_index": by_index(groups),
        "pass_at": pass_curve(groups, resamples),
        "refusals": refusals(table),
        "quality": quality(table),
        "cost": cost(table),
        "pairs": pairs(path),
    }


def figures(groups: Sequence[Group], n: int, resamples: int) -> dict[str, Any]:
    """Rates of some queries. ``first``: candidate 0 is right; ``best_of_n``: any is; ``picked``: the best by reward.

    The interval of ``rate`` is by query, for the candidates of one query are not independent.
    """
    places = [(group, place) for group in groups for place in range(len(group.outcomes))]
    verified = sum(group.right(place) for group, place in places)
    first = [group.right(0) for group in groups if group.outcomes]
    any_right = [any(map(group.right, group.sampled)) for group in groups if group.sampled]
    picked = [share for group in groups if (share := picked_share(group)) is not None]
    return {
        "queries": len(groups),
        "candidates": len(places),
        "verified": verified,
        "rate": _share(verified, len(places)),
        "rate_interval": rate_interval(groups, resamples),
        "first": _share(sum(first), len(first)),
        "best_of_n": _share(sum(any_right), len(any_right)),
        "picked": _share(sum(picked), len(picked)),
        "coverage": _share(sum(len(group.sampled) == n for group in groups), len(groups)),
    }


def rate_interval(groups: Sequence[Group], resamples: int) -> tuple[float, float] | None:
    """95 % of verified candidates among all, whole queries resampled; None when there are none."""
    import numpy as np

    counts = [(sum(map(group.right, range(len(group.outcomes)))), len(group.outcomes)) for group in groups]
    if not counts:
        return None
    return statistics.bootstrap_interval(
        np.array(counts, float), lambda means: means[:, 0] / means[:, 1], resamples=resamples
    )


def picked_share(group: Group) -> float | None:
    """Truth of the highest-rewarded sample; ties count by the share of passes among them. None without rewards."""
    scored = [(group.rewards[place], group.right(place)) for place in group.sampled]
    values = [value for value, _ in scored if value is not None]
    if not values:
        return None
    tied = [right for value, right in scored if value == max(values)]
    return sum(tied) / len(tied)


def by_index(groups: Iterable[Group]) -> dict[int, dict[str, Any]]:
    """Verified by candidate index: do later samples do worse than the first?"""
    seen: Counter[int] = Counter()
    right: Counter[int] = Counter()
    for group in groups:
        for place, index in enumerate(group.indices):
            seen[index] += 1
            right[index] += group.right(place)
    return {
        index: {"records": seen[index], "verified": right[index], "rate": right[index] / seen[index]}
        for index in sorted(seen)
    }


def largest_k(sizes: Sequence[int]) -> int:
    """The largest k that 95 % of the queries reach; a curve over fewer queries would compare different ones."""
    return sorted(sizes)[int(0.05 * len(sizes))] if sizes else 0


def steps(largest: int) -> list[int]:
    """The k of a curve: powers of two and the largest."""
    return sorted({k for k in POWERS if k <= largest} | ({largest} if largest else set()))


def pass_curve(groups: Sequence[Group], resamples: int) -> list[dict[str, float]]:
    """pass@k of the conclusive samples, with intervals by query."""
    import numpy as np

    counts = [(len(group.conclusive), sum(map(group.right, group.conclusive))) for group in groups if group.conclusive]
    largest = largest_k([n for n, _ in counts])
    counts = [(n, c) for n, c in counts if n >= largest]
    if not counts or not largest:
        return []
    ks = steps(largest)
    values = np.array([[statistics.pass_at_k(n, c, k) for k in ks] for n, c in counts])
    low, high = statistics.bootstrap_columns(values, resamples=resamples)
    mean = values.mean(axis=0)
    return [
        {"k": k, "mean": float(mean[i]), "low": float(low[i]), "high": float(high[i]), "queries": len(counts)}
        for i, k in enumerate(ks)
    ]


def refusals(table: CandidateTable) -> dict[str, Any]:
    flags, kinds = table.columns["refusal_is_refusal"], table.columns["refusal_type"]
    types = Counter(kind or "unnamed" for flag, kind in zip(flags, kinds, strict=True) if flag)
    return {"count": sum(types.values()), "by_type": dict(types)}


def quality(table: CandidateTable) -> dict[str, Any]:
    lengths = [value for value in table.columns["quality_answer_length"] if value is not None]
    return {
        "empty": sum(bool(value) for value in table.columns["quality_is_empty"]),
        "short": sum(bool(value) for value in table.columns["quality_is_short_answer"]),
        "truncated": sum(value == "length" for value in table.columns["finish_reason"]),
        "repeats": sum(value is not None for value in table.columns["is_duplicate_of"]),
        "errors": sum(bool(value) for value in table.columns["generation_error"]),
        "mean_characters": sum(lengths) / len(lengths) if lengths else None,
    }


def cost(table: CandidateTable) -> dict[str, Any]:
    """Dollars, tokens and seconds; ``usd`` None when no candidate has a price."""
    dollars = [value for value in table.columns["cost_usd"] if value is not None]
    seconds = [value for value in table.columns["latency_s"] if value is not None]
    verified = sum(bool(value) for value in table.columns["is_verified"])
    return {
        "usd": sum(dollars) if dollars else None,
        "usd_per_verified": sum(dollars) / verified if dollars and verified else None,
        "prompt_tokens": sum(value or 0 for value in table.columns["usage_prompt_tokens"]),
        "completion_tokens": sum(value or 0 for value in table.columns["usage_completion_tokens"]),
        "mean_seconds": sum(seconds) / len(seconds) if seconds else None,
    }


def pairs(path: Path) -> dict[str, Any] | None:
    """The pairs of a run folder: how many, their margins, and how far the longer side is the chosen one."""
    import pyarrow.parquet as pq

    files = sorted((path / "dpo").glob("*.parquet")) if path.is_dir() else []
    if not files:
        return None
    counts: dict[str, int] = {}
    margins = statistics.Moments()
    lengths: list[tuple[int, int]] = []
    reasons: Counter[str] = Counter()
    for file in files:
        with pq.ParquetFile(file) as table:
            counts[file.stem] = table.metadata.num_rows
            for batch in table.iter_batches(batch_size=256, columns=["chosen", "rejected", "margin", "reason"]):
                rows = batch.to_pylist()
                margins += statistics.Moments.of([row["margin"] for row in rows])
                reasons.update(row["reason"] for row in rows)
                lengths += [(_characters(row["chosen"]), _characters(row["rejected"])) for row in rows]
    return {
        **counts,
        "total": sum(counts.values()),
        "mean_margin": margins.mean if margins.count else None,
        "chosen_longer": statistics.length_bias(lengths)["longer"],
        "mean_length_difference": statistics.length_bias(lengths)["mean_difference"],
        "by_reason": dict(reasons),
    }


def _characters(messages: Sequence[Any]) -> int:
    """Characters of a side's texts; messages are JSON texts as Parquet holds them."""
    read = [json.loads(message) if isinstance(message, str | bytes) else message for message in messages]
    return sum(len(message.get("content") or "") for message in read)


def _share(part: float, whole: int) -> float | None:
    return part / whole if whole else None
