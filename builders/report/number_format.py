"""Numbers as the terminal, the HTML report and the dataset card print them; None and missing values are a dash."""

from __future__ import annotations

from bestofn.builders.statistics.estimators import CurvePoint

MISSING = "–"


def percent(share: float | None) -> str:
    """0.125 -> "12.5 %"."""
    return MISSING if share is None else f"{100 * share:.1f} %"


def interval(low: float, high: float) -> str:
    """(0.1, 0.2) -> "10.0–20.0", in percent."""
    return f"{100 * low:.1f}–{100 * high:.1f}"


def point(value: CurvePoint) -> str:
    """The mean of a curve point with its interval: "12.5 % (10.0–15.0)"."""
    return f"{percent(value.mean)} ({interval(value.low, value.high)})"


def rate(share: float | None, bounds: tuple[float, float] | None) -> str:
    """A rate with its interval: "12.5 % (10.0–15.0)"; without an interval, 0 to 100 is printed."""
    return f"{percent(share)} ({interval(*(bounds or (0.0, 1.0)))})"


def dollars(value: float | None) -> str:
    """Four digits after the point below one dollar, two from there on."""
    if value is None:
        return MISSING
    return f"${value:,.4f}" if value < 1 else f"${value:,.2f}"
