"""Writes the summary that a build prints last: its counts, cost, errors, files and next commands."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bestofn.builders.analysis.problems import problems
from bestofn.builders.analysis.run_figures import RunFigures
from bestofn.builders.formats.terminal_text import visible
from bestofn.builders.records import Row
from bestofn.builders.report.number_format import at_k, percent, point

LOADED = ("dpo", "kto", "sft", "candidates")  # the summary shows how to load the first of these that has rows


def headline(figures: RunFigures, manifest: Row, run: Path) -> str:
    """Return the summary of the build in the folder ``run``."""
    pairs = figures.pairs.total if figures.pairs else 0
    lines = ["", _counts(figures), *_splits(figures), *_scores(figures)]
    lines.append(f"{_pairs(figures)} {_cost(figures, pairs, manifest)}")
    if skipped := manifest.get("skipped"):
        lines.append("Skipped: " + ", ".join(f"{count:,} {reason}" for reason, count in skipped.items()))
    lines += [f"Problem: {visible(str(problem))}" for problem in problems(figures)]
    lines += [f"Problem: {exceeded}"] if (exceeded := over_budget(manifest)) else []
    last = manifest.get("last_command") or {}
    lines += _defects(last)
    if faults := last.get("batch_faults"):
        lines.append("Batch jobs: " + "; ".join(f"{fault}: {count:,}" for fault, count in faults.items()) + ".")
    return "\n".join([*lines, "", *_files(manifest, run)])


def over_budget(manifest: Row) -> str:
    """Return a sentence with the amount by which the run exceeds its budget; "" if it does not exceed it."""
    last, budget = manifest.get("last_command") or {}, (manifest.get("config") or {}).get("budget_usd")
    paid = float(last.get("usd") or 0.0) + float(last.get("usd_before") or 0.0)
    if not last.get("usd") or budget is None or paid <= float(budget) * (1 + 1e-9):
        return ""
    return (
        f"budget_usd={budget} is exceeded by ${paid - float(budget):.4f} (${paid:.4f} paid): requests in flight are "
        "completed when the budget is spent."
    )


def _defects(spending: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line about failed attempts and a line about repaired replies, each with the counts by cause."""
    if failed := spending.get("failures"):
        yield f"{sum(failed.values()):,} attempts to get a reply failed, retries included: {_listed(failed)}."
    if repaired := spending.get("repaired"):
        yield f"Replies with a defect that does not change the answer: {_listed(repaired)}."


def _scores(figures: RunFigures) -> list[str]:
    """Return a line with the mean score of a run without verdicts of pass and fail; [] for other runs.

    Returns [] also if all scores are equal: ``reward=verification`` gives one score to all answers without a verdict.
    """
    equal = figures.scores == figures.best_scores and not figures.scores.squares
    if figures.pass_at() or equal:
        return []
    return [f"Score by reward: mean {figures.scores.mean:.3f}, mean of the best of n {figures.best_scores.mean:.3f}."]


def _pairs(figures: RunFigures) -> str:
    """Return a sentence with the number of pairs, and the numbers of pairs that do not rely on verdicts."""
    total = figures.pairs.total if figures.pairs else 0
    unverified = figures.pairs.unverified if figures.pairs else {}
    kinds = ", ".join(f"{count:,} {visible(text)}" for text, count in unverified.items())
    return f"{total:,} preference pairs{f' ({kinds})' if kinds else ''}."


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} × {visible(name)}" for name, count in Counter(counts).most_common())


def _counts(figures: RunFigures) -> str:
    outcomes = ", ".join(f"{count:,} {name}" for name, count in figures.outcomes.most_common())
    return f"{figures.queries:,} queries, {figures.candidates:,} candidates: {outcomes}"


def _files(manifest: Row, run: Path) -> list[str]:
    views: Mapping[str, int] = manifest.get("views") or {}
    filled = {name.partition("/")[0] for name, rows in views.items() if rows}
    loaded = next((name for name in LOADED if name in filled), "")
    return [
        f"Data:   {run}",
        *(f"        {name}: {count:,} rows" for name, count in views.items()),
        f"Look:   bestofn inspect {run}",
        f"Read:   bestofn report {run}",
        *([f"Load:   load_dataset('parquet', data_dir='{run}/{loaded}')"] if loaded else []),
    ]


def _cost(figures: RunFigures, pairs: int, manifest: Row) -> str:
    """Return a sentence with the cost of the run in total, per candidate, per verified answer and per pair."""
    usd = figures.totals.total_usd
    paid = float((manifest.get("last_command") or {}).get("usd") or 0.0)
    if usd is None:
        return "Cost $0.0000." if not paid else f"Paid by this command: ${paid:.4f}."
    counts = {"candidate": figures.candidates, "verified answer": figures.verified, "pair": pairs}
    shares = [f"${usd / count:.5f} per {name}" for name, count in counts.items() if count and usd]
    whole = f"Cost ${usd:.4f}" + (f" ({', '.join(shares)})." if shares else ".")
    return whole if math.isclose(usd, paid, abs_tol=5e-5) else f"{whole} Paid by this command: ${paid:.4f}."


def _splits(figures: RunFigures) -> list[str]:
    """Return the lines of a table with one row per split; [] if no candidate counts towards pass@k."""
    last = figures.rates().pass_at_k
    if last is None:
        return []
    heads = ("pass@1 (95 %)", f"pass@{last.k} (95 %)", f"best of {last.k} by reward")
    rows = [f"  {'split':<14} {'queries':>8}  {heads[0]:>22}  {heads[1]:>22}  {heads[2]:>22}"]
    splits = list(figures.by_split)
    for split in [*splits, None] if len(splits) > 1 else splits:
        if row := _split(figures, split, last.k):
            rows.append(row)
    return rows


def _split(figures: RunFigures, split: str | None, largest: int) -> str | None:
    """Return the table row of ``split``; None if no candidate of the split counts towards pass@k.

    If ``split`` is None, the row covers all splits together.

    ``largest`` is the k in the heading of the table. If the split has a different largest k, the row shows that k.
    """
    rates = figures.rates(split)
    if rates.pass_at_1 is None or rates.pass_at_k is None:
        return None
    k, best = rates.pass_at_k.k, rates.best_by_reward
    last = at_k("pass@", k, largest, point(rates.pass_at_k))
    by_reward = at_k("best of ", k, largest, percent(best.mean)) if best else "no rewards"
    return f"  {split or 'all':<14} {rates.queries:>8,}  {point(rates.pass_at_1):>22}  {last:>22}  {by_reward:>22}"
