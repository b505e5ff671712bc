"""``bestofn inspect RUN [RUN …] [--json]``: look at one run, or at several side by side.

RUN is the folder of a build, or a Parquet file of candidates; patterns such as ``runs/*`` are understood.
"""

from __future__ import annotations

import glob
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bestofn.builders.config.arguments import Arguments
from bestofn.builders.config.command import run_command
from bestofn.scripts.catalogue import INSPECT


def main(words: Sequence[str] | None = None) -> None:
    """Run ``bestofn inspect`` with the words of a command line."""
    run_command(INSPECT, inspect, words)


def inspect(arguments: Arguments) -> None:
    """Print the figures of the runs: as tables, or as JSON."""
    from bestofn.builders.analysis.summary import summarize

    found = [summarize(path, resamples=arguments.number("resamples")) for path in expanded(arguments.runs)]
    if arguments.flag("json"):
        print(json.dumps(found if len(found) > 1 else found[0], indent=2, ensure_ascii=False, allow_nan=False))
    elif len(found) == 1:
        show(found[0])
    else:
        compare(found)


def expanded(words: Sequence[str]) -> list[Path]:
    """The paths that ``words`` name; a pattern that matches nothing stays as it is and is refused later by name."""
    return [Path(path) for word in words for path in (sorted(glob.glob(word)) or [word])]


def show(run: dict[str, Any]) -> None:
    """One run, table by table."""
    console = _console()
    console.rule(f"[bold]{run['run']}")
    for key, value in run["metadata"].items():
        console.print(f"[dim]{key:>14}[/]  {_indented(value)}", highlight=False, markup=True)
    outcomes = ", ".join(f"{count:,} {name}" for name, count in sorted(run["outcomes"].items()))
    console.print(f"\n{run['queries']:,} queries, {run['records']:,} candidates: {outcomes}", highlight=False)
    console.print(_by_split(run))
    console.print(_by_index(run))
    if run["pass_at"]:
        console.print(_curve(run))
    for line in remarks(run):
        console.print(line, highlight=False, markup=False)


def compare(runs: Sequence[dict[str, Any]]) -> None:
    """Several runs, one row each."""
    table = _table(
        "", "Run", "Model", "N", "Queries", "Records", "Verified", "First", "Best of N", "By reward", "Pairs", "Cost"
    )
    for run in runs:
        meta, pairs = run["metadata"], run["pairs"] or {}
        table.add_row(
            run["run"],
            meta.get("model", "–"),
            str(run["n"]),
            f"{run['queries']:,}",
            f"{run['records']:,}",
            _percent(run["rate"]),
            _percent(run["first"]),
            _percent(run["best_of_n"]),
            _percent(run["picked"]),
            f"{pairs['total']:,}" if pairs else "–",
            _dollars(run["cost"]["usd"]),
        )
    console = _console()
    console.print(table)
    splits = sorted({split for run in runs for split in run["by_split"]})
    if len(splits) > 1:
        by_split = _table("Verified by split", "Run", *splits)
        for run in runs:
            by_split.add_row(run["run"], *(_percent(run["by_split"].get(split, {}).get("rate")) for split in splits))
        console.print(by_split)
    if len({run["queries"] for run in runs}) > 1:
        console.print("The runs hold different numbers of queries; `bestofn compare` joins them by query.")


def remarks(run: dict[str, Any]) -> list[str]:
    """Refusals, quality, pairs and cost, a line each."""
    quality, cost, pairs = run["quality"], run["cost"], run["pairs"]
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in run["refusals"]["by_type"].items())
    lines = [
        f"Coverage: {_percent(run['coverage'])} of the queries have all {run['n']} candidates.",
        f"Refusals: {run['refusals']['count']:,}{f' ({kinds})' if kinds else ''}.",
        f"Quality:  {quality['empty']:,} empty, {quality['truncated']:,} cut off, {quality['repeats']:,} repeats, "
        f"{quality['errors']:,} failed to generate.",
    ]
    if pairs:
        margin = "–" if pairs["mean_margin"] is None else f"{pairs['mean_margin']:.3f}"
        lines.append(
            f"Pairs:    {pairs['total']:,}, mean margin {margin}; the chosen side is the longer in "
            f"{_percent(pairs['chosen_longer'])}."
        )
    spent = (
        f"{_dollars(cost['usd'])}, {_dollars(cost['usd_per_verified'])} a verified answer"
        if cost["usd"] is not None
        else "no price known"
    )
    lines.append(f"Cost:     {spent}; {cost['prompt_tokens']:,} + {cost['completion_tokens']:,} tokens.")
    return lines


def _by_split(run: dict[str, Any]) -> Any:
    table = _table(
        "Verification", "Split", "Queries", "Candidates", "Verified (95 %)", "First", "Best of N", "By reward"
    )
    rows = {**run["by_split"], "all": run} if len(run["by_split"]) > 1 else run["by_split"]
    for split, part in rows.items():
        low, high = part["rate_interval"] or (0.0, 1.0)
        table.add_row(
            split or "–",
            f"{part['queries']:,}",
            f"{part['candidates']:,}",
            f"{_percent(part['rate'])} ({100 * low:.1f}–{100 * high:.1f})",
            _percent(part["first"]),
            _percent(part["best_of_n"]),
            _percent(part["picked"]),
        )
    return table


def _by_index(run: dict[str, Any]) -> Any:
    table = _table("By candidate index", "Index", "Records", "Verified", "Rate")
    for index, part in run["by_index"].items():
        table.add_row(str(index), f"{part['records']:,}", f"{part['verified']:,}", _percent(part["rate"]))
    return table


def _curve(run: dict[str, Any]) -> Any:
    table = _table(f"pass@k over {run['pass_at'][0]['queries']:,} queries", "k", "pass@k", "95 %")
    for point in run["pass_at"]:
        table.add_row(str(point["k"]), _percent(point["mean"]), f"{100 * point['low']:.1f}–{100 * point['high']:.1f}")
    return table


def _table(title: str, *columns: str) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD, title_style="bold")
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place == 0 else "right", no_wrap=place > 0)
    return table


def _console() -> Any:
    from rich.console import Console

    width = None if sys.stdout.isatty() else 140
    return Console(width=width)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _dollars(value: float | None) -> str:
    return "–" if value is None else f"${value:,.4f}" if value < 1 else f"${value:,.2f}"


def _indented(text: str) -> str:
    from rich.markup import escape

    return escape(text.strip()).replace("\n", "\n" + " " * 16)


if __name__ == "__main__":
    main()
