"""Formats numbers for the terminal, the HTML report and the dataset card; a missing value (None) is a dash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bestofn.builders.analysis.audit import ErrorRateJson, OpinionJson
from bestofn.builders.analysis.figures import Cost, Figures, JudgeUse, Rates
from bestofn.builders.tables.made_with import per_query

MISSING = "–"


def percent(share: float | None) -> str:
    """Format a share as a percentage: 0.125 -> "12.5 %"."""
    return MISSING if share is None else f"{100 * share:.1f} %"


def interval(low: float, high: float) -> str:
    """Format an interval of shares in percent: (0.1, 0.2) -> "10.0–20.0"."""
    return f"{100 * low:.1f}–{100 * high:.1f}"


def rate(share: float | None, bounds: tuple[float, float] | None) -> str:
    """Format a rate with its interval: "12.5 % (10.0–15.0)". If ``bounds`` is None, the interval is 0 to 100.

    If ``share`` is None, only a dash is returned.
    """
    if share is None:
        return MISSING
    return f"{percent(share)} ({interval(*(bounds or (0.0, 1.0)))})"


def at_k(name: str, k: int | None, heading: int, value: str) -> str:
    """Return a cell of the column ``name`` ``heading``, such as pass@8. A cell with another ``k`` names its k."""
    return value if k in (None, heading) else f"{name}{k} {value}"


def dollars(value: float | None) -> str:
    """Format an amount in US dollars, with four decimals below one dollar and two decimals otherwise.

    An amount below a tenth of a cent, such as the cost of one answer, has five decimals.
    """
    if value is None:
        return MISSING
    if 0 < value < 0.001:
        return f"${value:.5f}"
    return f"${value:,.4f}" if value < 1 else f"${value:,.2f}"


def answers_text(figures: Figures) -> str:
    """Return how many answers a run has, as in "299 recorded answers, 1 to 13 for each of 65 queries"."""
    made = figures["made_with"]
    recorded, sampled = made["recorded"], made["answers"] - made["recorded"]
    count = f"{made['answers']:,} {'sampled' if sampled else 'recorded'} answers"
    if recorded and sampled:
        count = f"{made['answers']:,} answers ({recorded:,} recorded, {sampled:,} sampled)"
    missing = figures["records"] - made["answers"]
    without = f" and {missing:,} candidates without one" if missing else ""
    return f"{count}{without}, {per_query(made)} for each of {figures['queries']:,} queries"


def counted_text(rates: Rates) -> str:
    """Return what pass@1 and pass@k count, and what they leave out."""
    cut = f", {rates['counted_truncated']:,} of them cut off" if rates["counted_truncated"] else ""
    left = ", ".join(f"{count:,} {reason}" for reason, count in rates["left_out"].items())
    return (
        f"pass@k counts {rates['counted']:,} of {rates['candidates']:,} answers{cut}, to "
        f"{rates['counted_queries']:,} of {rates['queries']:,} queries. Left out: {left or 'none'}."
    )


def cost_text(cost: Cost) -> str:
    """Return the whole cost of a run."""
    if cost["usd"] is None:
        return "no price known" if cost["unpriced"] else "no cost is stored"
    return dollars(cost["usd"])


def judge_text(use: JudgeUse) -> str:
    """Return how often a judge was asked, decided and failed, in numbers of candidates; "" if no judge was asked."""
    if not use["asked"]:
        return ""
    return f"asked about {use['asked']:,} candidates, decided {use['decided']:,}, failed {use['failed']:,}."


class AuditRow(NamedTuple):
    """One second opinion as text: the rates of wrong fails and passes, and how many audited verdicts it decided."""

    source: str
    false_fail: str
    fails: str
    false_pass: str
    passes: str

    @property
    def text(self) -> str:
        """The row as one line."""
        fails, passes = f"{self.false_fail}, {self.fails}", f"{self.false_pass}, {self.passes}"
        return f"{self.source}: false fails {fails}; false passes {passes}."


def audit_rows(opinions: Sequence[OpinionJson]) -> list[AuditRow]:
    """Return one row of text per second opinion of an audit."""
    return [
        AuditRow(one["source"], *_audit_cells(one["false_fail"]), *_audit_cells(one["false_pass"])) for one in opinions
    ]


def _audit_cells(error: ErrorRateJson) -> tuple[str, str]:
    decided = f"{error['decided']:,} of {error['audited']:,} decided"
    return rate(error["rate"], (error["low"], error["high"])), decided
