"""Computes the figures of ``bestofn loop``: pass@1 before and after training, or the accuracy of a reward model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bestofn.builders.records import JsonObject
from bestofn.builders.statistics.estimators import pass_at_k
from bestofn.builders.statistics.intervals import bootstrap_difference_interval, bootstrap_interval

Passes = Mapping[str, tuple[str, int, int]]
"""Maps a query id to (split, number of passes, number of candidates with the verdict pass or fail)."""


MOST_K = 8


class Preference(NamedTuple):
    """One pair with the reward model's scores. The lengths count the characters of each side's JSON text."""

    query: str
    split: str
    chosen_score: float
    rejected_score: float
    chosen_length: int
    rejected_length: int


def pass_report(before: Passes, after: Passes) -> dict[str, Any]:
    """Return pass@1 before and after training, in total and per split, over the queries with verdicts in both runs.

    The gain is the mean difference per query. The intervals come from a bootstrap over queries. ``k`` of pass@k is the
    number of candidates per query, at most ``MOST_K``.
    """
    queries = sorted(set(before) & set(after))
    splits = sorted({before[query][0] for query in queries})
    k = min(MOST_K, max((before[query][2] for query in queries), default=1))
    rows = {
        split: _gain([query for query in queries if split in ("all", before[query][0])], before, after, k)
        for split in ("all", *splits)
    }
    return {"queries": len(queries), "undecided": len(set(before) ^ set(after)), "k": k, "splits": rows}


def _gain(queries: Sequence[str], before: Passes, after: Passes, k: int) -> JsonObject:
    first = [before[query][1] / before[query][2] for query in queries]
    second = [after[query][1] / after[query][2] for query in queries]
    return {
        "queries": len(queries),
        "before": mean(first),
        "after": mean(second),
        "gain": mean(second) - mean(first),
        "interval": bootstrap_difference_interval(first, second),
        "pass_at_k_before": mean([pass_at_most(k, *before[query][1:]) for query in queries]),
        "pass_at_k_after": mean([pass_at_most(k, *after[query][1:]) for query in queries]),
    }


def pass_at_most(k: int, right: int, count: int) -> float:
    """Return pass@``k`` of one query with ``count`` candidates, of which ``right`` have the verdict pass.

    If ``count`` is below ``k``, return pass@``count``.
    """
    return pass_at_k(count, right, min(k, count))


def pair_report(pairs: Sequence[Preference]) -> dict[str, Any]:
    """Return the accuracy of the reward model on pairs, and the accuracy of a rule that compares lengths.

    The accuracy is the share of pairs in which the chosen side is preferred. The length rule always prefers the longer
    side, or always the shorter side if that is more accurate on the pairs. The intervals come from a bootstrap over
    queries.
    """
    splits = ["all", *sorted({pair.split for pair in pairs})]
    rows = {split: _accuracy([pair for pair in pairs if split in ("all", pair.split)]) for split in splits}
    return {"pairs": len(pairs), "splits": rows}


def _accuracy(pairs: Sequence[Preference]) -> JsonObject:
    by_length = [preferred(pair.rejected_length, pair.chosen_length) for pair in pairs]
    if mean(by_length) < 0.5:
        by_length = [1.0 - hit for hit in by_length]
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for pair, length_hit in zip(pairs, by_length, strict=True):
        query = sums[pair.query]
        query[0] += preferred(pair.chosen_score, pair.rejected_score)
        query[1] += length_hit
        query[2] += 1
    queries = np.array(list(sums.values()))
    right, length, count = queries.sum(axis=0)
    return {
        "pairs": len(pairs),
        "accuracy": right / count,
        "interval": bootstrap_interval(queries, lambda means: means[:, 0] / means[:, 2]),
        "length": length / count,
        "margin": (right - length) / count,
        "margin_interval": bootstrap_interval(queries, lambda means: (means[:, 0] - means[:, 1]) / means[:, 2]),
    }


def preferred(chosen: float, rejected: float) -> float:
    """Return 1 if the chosen side has the larger value, 0.5 for a tie, and 0 otherwise."""
    return 0.5 if chosen == rejected else float(chosen > rejected)


def report_table(report: JsonObject) -> str:
    """Return the report as a Markdown table."""
    rows = report["splits"].items()
    if "pairs" in report:
        head = "| split | held-out pairs | reward model | 95 % interval | length | above length | 95 % interval |\n"
        lines = [
            f"| {split} | {row['pairs']} | {row['accuracy']:.3f} | {interval_text(row['interval'], '')} "
            f"| {row['length']:.3f} | {row['margin']:+.3f} | {interval_text(row['margin_interval'], '+')} |"
            for split, row in rows
        ]
        return "\n".join([head + "|---" * 7 + "|", *lines])
    k = report["k"]
    head = (
        f"| split | queries | pass@1 before | after | gain | 95 % interval | pass@{k} before | after |\n" + "|---" * 8
    )
    lines = [
        f"| {split} | {row['queries']} | {row['before']:.3f} | {row['after']:.3f} | {row['gain']:+.3f} | "
        f"{interval_text(row['interval'], '+')} | {row['pass_at_k_before']:.3f} | {row['pass_at_k_after']:.3f} |"
        for split, row in rows
    ]
    return "\n".join([head + "|", *lines])


def interval_text(interval: Sequence[float], sign: str) -> str:
    """Format an interval: ``0.025 to 0.145``. ``sign`` is "+" for numbers with a sign, or ""."""
    return " to ".join(f"{end:{sign}.3f}" for end in interval)


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean; NaN if there are no values."""
    return sum(values) / len(values) if values else float("nan")
