"""The headline of a run on a terminal: what came out, how good it is, and where to look further."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bestofn.builders.analysis.figures import Figures
from bestofn.builders.report.terminal import visible
from bestofn.builders.statistics.estimators import CurvePoint


def headline(rows: Iterable[Mapping[str, Any]], described: Mapping[str, Any], out: Path) -> str:
    """A few lines that end a build: where the data is, first against best of N by split, what to run next."""
    figures = Figures()
    for row in rows:
        figures.add(row)
    lines = [
        "",
        f"{figures.queries:,} queries, {sum(figures.outcomes.values()):,} candidates: "
        + ", ".join(f"{count:,} {name}" for name, count in figures.outcomes.most_common()),
        *_table(figures),
        f"{figures.pairs:,} preference pairs. {_cost(figures, (described.get('spending') or {}).get('usd', 0.0))}",
    ]
    skipped = described.get("skipped") or {}
    if skipped:
        lines.append("Skipped rows: " + ", ".join(f"{count:,} {reason}" for reason, count in skipped.items()))
    for text, count in figures.troubles.most_common(3):
        lines.append(f"{count:,} candidates could not be judged: {visible(text)}")
    if not figures.pairs:
        lines.append(
            "No pair came out: a pair needs a passing and a failing answer to one query. "
            "Draw more (n=…), or look at the verdicts with `bestofn inspect`."
        )
    lines += [
        "",
        f"Data:   {out}",
        *(f"        {name}: {count:,} rows" for name, count in (described.get("views") or {}).items()),
        f"Look:   bestofn inspect {out}",
        f"Read:   bestofn report {out}",
        f"Load:   load_dataset('parquet', data_dir='{out}/dpo')",
    ]
    return "\n".join(lines)


def _cost(figures: Figures, usd: float) -> str:
    """What was spent, also for each verified answer and each pair."""
    per = {"candidate": sum(figures.outcomes.values()), "verified answer": figures.verified, "pair": figures.pairs}
    shares = [f"${usd / count:.5f} a {name}" for name, count in per.items() if count and usd]
    return f"Cost ${usd:.4f}" + (f" ({', '.join(shares)})." if shares else ".")


def _table(figures: Figures) -> list[str]:
    curve = figures.pass_at()
    if not curve:
        return []
    largest = curve[-1].k
    heads = ("pass@1 (95 %)", f"pass@{largest} (95 %)")
    rows = [f"  {'split':<14} {'queries':>8}  {heads[0]:>22}  {heads[1]:>22}  {'best of n by reward':>20}"]
    for split in [*sorted(figures.pools), None] if len(figures.pools) > 1 else sorted(figures.pools):
        part = figures.pass_at(split)
        if not part:
            continue
        picked = figures.picked(split)
        last = _interval(part[-1]) if part[-1].k == largest else f"pass@{part[-1].k} {_interval(part[-1])}"
        queries = sum(pools.total() for name, pools in figures.pools.items() if split in (None, name))
        rows.append(
            f"  {split or 'all':<14} {queries:>8,}  {_interval(part[0]):>22}  {last:>22}  {100 * picked:>18.1f} %"
        )
    return rows


def _interval(point: CurvePoint) -> str:
    return f"{100 * point.mean:.1f} % ({100 * point.low:.1f}–{100 * point.high:.1f})"
