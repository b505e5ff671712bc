"""``bestofn analyze RUN``: best-of-N curves, greedy against best, over-optimisation, disagreements.

Writes ``RUN/analysis/analysis.json`` and ``curves.html`` beside it, and prints the headlines.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bestofn.builders.config.arguments import Arguments
from bestofn.builders.config.command import run_command
from bestofn.scripts.catalogue import ANALYZE

LABELS = {
    "pass_at_k": "pass@k",
    "pass_hat_k": "pass^k",
    "best_by_reward": "best of k by reward",
    "majority": "majority of k",
    "weighted_majority": "weighted majority of k",
}


def main(words: Sequence[str] | None = None) -> None:
    """Run ``bestofn analyze`` with the words of a command line."""
    run_command(ANALYZE, analyze_run, words)


def analyze_run(arguments: Arguments) -> None:
    """Print the analysis of a run and write it into RUN/analysis, or print it as JSON and write nothing."""
    from bestofn.builders.analysis.best_of_n import analyze

    run = arguments.run
    found = analyze(run, resamples=arguments.number("resamples"), read=arguments.number("read"))
    if arguments.flag("json"):
        print(json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False))
        return
    show(found)
    print(f"\n{write(found, (run if run.is_dir() else run.parent) / 'analysis')}")


def write(found: dict[str, Any], folder: Path) -> Path:
    """Write the figures and their plots below ``folder``; returns it."""
    from bestofn.builders.run.manifest import write_text

    write_text(folder / "analysis.json", json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    write_text(folder / "curves.html", page(found))
    return folder


def page(found: dict[str, Any]) -> str:
    """The curves on one self-contained page."""
    import html

    from bestofn.builders.report import html_page as html_report
    from bestofn.builders.report.charts import Line, lines

    curve, drawn = found["curves"], []
    for name, line in curve["lines"].items():
        if name in LABELS:
            points = list(zip(curve["k"], line["mean"], strict=True))
            drawn.append(Line(LABELS[name], points, list(zip(line["low"], line["high"], strict=True))))
    parts = {"What k samples give": lines(drawn, "k", "share right", y_range=(0.0, 1.0))}
    if "reward_of_best" in curve["lines"]:
        truth, reward = curve["lines"]["best_by_reward"], curve["lines"]["reward_of_best"]
        estimate = curve["lines"].get("kl_estimate")
        far = estimate["mean"] if estimate else curve["kl_bound"]
        against = [
            Line("verified", list(zip(far, truth["mean"], strict=True))),
            Line("reward", list(zip(far, reward["mean"], strict=True))),
        ]
        axis = "KL over answers, estimated (nats)" if estimate else "KL, upper bound (nats)"
        parts["Reward and truth, the further the choice goes"] = lines(against, axis, "mean of the best")
    title = html.escape(f"Best of N: {found['run']}, {curve['queries']:,} queries")
    facts = "".join(f"<p>{html.escape(line)}</p>" for line in headlines(found, read=0))
    figures = "".join(
        f"<figure><figcaption>{name}</figcaption>{drawing}</figure>" for name, drawing in parts.items() if drawing
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>'
        f"<style>{html_report.style()}</style></head><body><header><h1>{title}</h1></header><main>"
        f'<section class="facts">{facts}</section><section class="charts">{figures}</section>'
        f'<section class="wide">{numbers(found)}</section><section class="wide">{to_read(found)}</section>'
        "</main></body></html>"
    )


def numbers(found: dict[str, Any]) -> str:
    """The curves as a table with their intervals, and what each further sample gains and takes."""
    curve = found["curves"]
    heads = "".join(f"<th>k={k}</th>" for k in curve["k"])
    rows = []
    for name, label in LABELS.items():
        if line := curve["lines"].get(name):
            cells = zip(line["mean"], line["low"], line["high"], strict=True)
            drawn = "".join(
                f"<td>{100 * m:.1f} % <small>{100 * low:.1f} to {100 * high:.1f}</small></td>" for m, low, high in cells
            )
            rows.append(f"<tr><td>{label}</td>{drawn}</tr>")
    gains = ["" if one["gain"] is None else f"{100 * one['gain']:+.1f}" for one in found["sweep"]]
    rows.append("<tr><td>points by each further sample</td>" + "".join(f"<td>{gain}</td>" for gain in gains) + "</tr>")
    if any(one["seconds"] for one in found["sweep"]):
        taken = "".join(f"<td>{one['seconds']:,.1f} s</td>" for one in found["sweep"])
        rows.append(f"<tr><td>seconds, one after another</td>{taken}</tr>")
    return f"<table><thead><tr><th>share right</th>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def to_read(found: dict[str, Any]) -> str:
    """Where reward and verifier disagree, as a table; nothing when they never do."""
    import html

    if not found["disagreements"]:
        return ""
    rows = "".join(
        f"<tr><td>{html.escape(row['query_id'])}</td><td>#{row['rewarded']}</td><td>#{row['verified']}</td>"
        f'<td>{row["gap"]:.3f}</td><td class="said">{html.escape(row["explanation"])}</td></tr>'
        for row in found["disagreements"]
    )
    heads = ("the reward's best is refuted", "rewarded", "verified", "gap")
    head = "".join(f"<th>{name}</th>" for name in heads) + '<th class="said">why refuted</th>'
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def show(found: dict[str, Any]) -> None:
    """The headlines, on a terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else 140)
    curve = found["curves"]
    if not curve["k"]:
        console.print("No query has a conclusive verdict: there is nothing to draw a curve of.")
        return
    table = Table(title=f"{found['run']}: {curve['queries']:,} queries", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("")
    for k in curve["k"]:
        table.add_column(f"k={k}", justify="right")
    for name, label in LABELS.items():
        if line := curve["lines"].get(name):
            cells = zip(line["mean"], line["low"], line["high"], strict=True)
            table.add_row(label, *(f"{100 * m:.1f} ({100 * low:.0f}–{100 * high:.0f})" for m, low, high in cells))
    console.print(table)
    for line in headlines(found):
        console.print(line, highlight=False, markup=False)


def headlines(found: dict[str, Any], *, read: int = 5) -> list[str]:
    """What the figures say, a line each, and ``read`` queries where reward and verifier disagree."""
    from bestofn.builders.report.terminal import visible

    lines = [f"The curve of {LABELS[name]} bends at k={k:g}." for name, k in found["knee"].items()]
    if reward := found["reward"]:
        auc = "–" if reward["auc"] is None else f"{100 * reward['auc']:.1f} %"
        lines.append(
            f"The reward orders {auc} of {reward['pairs']:,} pass–fail pairs right; "
            f"its correlation with length is {reward['length_correlation']:+.2f}."
        )
    if over := found["over_optimisation"]:
        word = "the reward is being hacked beyond it" if over["hacked"] else "no sign of over-optimisation"
        lines.append(
            f"Truth of the best by reward peaks at k={over['peak_k']} ({100 * over['peak_truth']:.1f} %): {word}."
        )
    if greedy := found["greedy"]:
        low, high = greedy["interval"]
        overhead = "" if greedy["overhead"] is None else f", {greedy['overhead']:.1f} × the time"
        lines.append(
            f"Greedy {100 * greedy['greedy']:.1f} %, best of n {100 * greedy['best_by_reward']:.1f} %: "
            f"{100 * greedy['improvement']:+.1f} points (95 % {100 * low:+.1f} to {100 * high:+.1f}){overhead}."
        )
    for row in found["disagreements"][:read]:
        sides = f"rewarded {row['rewarded']}, verified {row['verified']}"
        lines.append(f"Read {visible(row['query_id'])}: {sides} ({visible(row['explanation'][:80])})")
    return lines


if __name__ == "__main__":
    main()
