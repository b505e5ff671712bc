"""Presents the analysis by score: sentences, the rows of its table, and its charts."""

from __future__ import annotations

from typing import NamedTuple

from bestofn.builders.analysis.best_of_n import GreedyScores, ScoreAnalysis, ScoreStep
from bestofn.builders.report.charts import Line
from bestofn.builders.report.number_format import MISSING, percent
from bestofn.builders.report.run_charts import k_chart, knee_marks


class ScoreTable(NamedTuple):
    """A table with one row per k."""

    heads: list[str]
    rows: list[list[str]]


def score_sentences(found: ScoreAnalysis) -> list[str]:
    """Return the main results of the analysis by score, one sentence per result."""
    texts = [_knee(found), *map(_greedy, found["greedy"])]
    if found["left_out"]:
        texts.append(f"{found['left_out']:,} queries are left out, because they have fewer scored samples.")
    if gold := found["gold"]:
        result = "beyond it the reward is exploited" if gold["hacked"] else "no sign of over-optimization"
        texts.append(
            f"The gold score of the selected sample peaks at k={gold['peak_k']} ({gold['peak']:.3f}): {result}."
        )
    return texts


def score_rows(found: ScoreAnalysis) -> ScoreTable:
    """Return the table of the analysis by score: score, gain, time and cost per k."""
    heads = ["k", "score of the best", "95 %", "gain per sample", "seconds", "cost"]
    with_gold = found["gold"] is not None
    return ScoreTable(
        [*heads, *(["gold score"] if with_gold else [])], [_cells(step, with_gold) for step in found["steps"]]
    )


def score_charts(found: ScoreAnalysis) -> dict[str, str]:
    """Return the chart of the mean score over k, by title. With a gold reward, the chart has a second line for it."""
    steps = found["steps"]
    band = [(step["low"], step["high"]) for step in steps]
    drawn = [Line("reward", [(float(step["k"]), step["score"]) for step in steps], band)]
    if found["gold"]:
        drawn.append(Line("gold", [(float(step["k"]), step["gold"] or 0.0) for step in steps]))
    marks = knee_marks({"the score": found["knee"]})
    return {"Score of the best of k samples": k_chart(drawn, marks, "mean score", None)}


def _cells(step: ScoreStep, with_gold: bool) -> list[str]:
    cells = [
        str(step["k"]),
        f"{step['score']:.3f}",
        f"{step['low']:.3f} to {step['high']:.3f}",
        MISSING if step["gain"] is None else f"{step['gain']:+.4f}",
        MISSING if step["seconds"] is None else f"{step['seconds']:,.1f}",
        MISSING if step["usd"] is None else f"${step['usd']:.5f}",
    ]
    return [*cells, f"{step['gold']:.3f}"] if with_gold else cells


def _knee(found: ScoreAnalysis) -> str:
    last = found["steps"][-1]["k"]
    if found["knee"] is None:
        return f"The score of the best of k has no knee up to k={last}."
    return f"The score of the best of k bends at k={found['knee']:g}: beyond it, a doubling of k adds less than before."


def _greedy(found: GreedyScores) -> str:
    low, high = found["interval"]
    overhead = "" if found["overhead"] is None else f", {found['overhead']:.1f} × the time"
    return (
        f"Greedy {found['greedy']:.3f}, best of {found['k']} by score {found['best']:.3f}: {found['improvement']:+.3f} "
        f"(95 % {low:+.3f} to {high:+.3f}); best of {found['k']} wins {percent(found['win'])}, ties "
        f"{percent(found['tie'])}{overhead}."
    )
