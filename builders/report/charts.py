"""Draws small charts as inline SVG and HTML: lines with bands, stacked bars and histograms.

The HTML report, the page of ``bestofn analyze`` and the dataset card use them. The style sheet of the page
sets the colours by CSS class. Curves have the classes ``series0``, ``series1`` and so on. The parts of a bar have the
class names that the caller gives.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bestofn.builders.report.words import explanation_of

WIDTH, HEIGHT = 460, 240
LEFT, RIGHT, TOP, BOTTOM = 46, 20, 24, 34  # margins around the plot area
MOST_X_TICKS = 9
OUTLIERS = (0.01, 0.05)  # shares of the values that the outer bins of a histogram may take, at each end

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Line:
    """One curve: ``points`` are (x, y); ``band`` is empty or has one (low, high) per point."""

    name: str
    points: Sequence[Point]
    band: Sequence[Point] = ()


def lines(
    curves: Sequence[Line],
    x_label: str,
    y_label: str,
    *,
    y_range: Point | None = None,
    doublings: bool = False,
    marks: Mapping[float, str] | None = None,
) -> str:
    """Return a chart of curves over a shared x axis; "" if there are no points.

    If ``y_range`` is None, the y axis covers the range of the points and bands. With ``doublings``, each doubling of a
    positive x has the same width. ``marks`` draws a labelled vertical line at each of its x values.
    """
    xs = [x for curve in curves for x, _ in curve.points]
    if not xs:
        return ""
    ys = [y for curve in curves for _, y in curve.points]
    ys += [end for curve in curves for bounds in curve.band for end in bounds]
    low, high = y_range or (min(ys), max(ys))
    frame = _Frame(min(xs), max(xs), low, high, doublings and min(xs) > 0)
    parts = [frame.axes(x_label, y_label, ticks_x=sorted(set(xs)))]
    parts += [frame.mark(x, label, row) for row, (x, label) in enumerate((marks or {}).items())]
    for number, curve in enumerate(curves):
        parts += _curve(curve, number, frame)
    return _svg(parts, f"{y_label} over {x_label}") + _legend([curve.name for curve in curves])


def stacked(bars: Mapping[str, Mapping[str, float]], classes: Sequence[str]) -> str:
    """Return a chart with one horizontal bar per entry of ``bars`` (bar name -> class -> count).

    Each bar is divided into segments: one per class in ``classes``, as wide as the class's share of the counts.
    """
    rows: list[str] = []
    for name, counts in bars.items():
        total = sum(counts.values()) or 1
        segments = "".join(_segment(kind, counts[kind], total) for kind in classes if counts.get(kind))
        label = f'<span class="name">{html.escape(name)}</span>'
        rows.append(f'<div class="bar">{label}<span class="track">{segments}</span></div>')
    keys = [f'<span class="key"><i class="cut {_text(kind)}"></i>{_text(kind)}</span>' for kind in classes]
    return f'<div class="bars">{"".join(rows)}</div><div class="legend">{"".join(keys)}</div>'


def histogram(values: Sequence[float], x_label: str, *, bins: int = 20, x_range: Point | None = None) -> str:
    """Return a histogram of ``values``; "" if there are no values. See ``histograms``."""
    return histograms({"": values}, x_label, bins=bins, x_range=x_range)


def histograms(
    groups: Mapping[str, Sequence[float]], x_label: str, *, bins: int = 20, x_range: Point | None = None
) -> str:
    """Return the histograms of all groups in one chart, with the same bins; "" if there are no values.

    If ``x_range`` is None, the x axis covers the range of ``without_outliers``. Values outside the x axis are
    counted in the outer bins, and a note has their number.
    """
    everything = [value for values in groups.values() for value in values]
    if not everything:
        return ""
    low, high = x_range or without_outliers(everything)
    beyond = sum(not low <= value <= high for value in everything)
    if low == high:
        low, high = low - 0.5, high + 0.5
    shares = [_shares(values, low, high, bins) for values in groups.values()]
    frame = _Frame(low, high, 0, max(max(one) for one in shares) or 1)
    parts = [frame.axes(x_label, "share", ticks_x=_ticks(low, high))]
    parts += [_steps(one, number, frame) for number, one in enumerate(shares)]
    note = f"{beyond:,} of {len(everything):,} values are beyond the axis and counted in the outer bins."
    legend = _legend([name for name in groups if name])
    return _svg(parts, f"histogram of {x_label}") + legend + (f'<p class="beyond">{note}</p>' if beyond else "")


def without_outliers(values: Sequence[float]) -> Point:
    """Return the range of ``values``. Outliers that would take more than half of the range are left out.

    Outliers are at most 5 % of the values at each end.
    """
    ordered = sorted(values)
    low, high = ordered[0], ordered[-1]
    for share in OUTLIERS:
        inner_low, inner_high = ordered[int(share * len(ordered))], ordered[-1 - int(share * len(ordered))]
        if inner_low < inner_high and high - low > 2 * (inner_high - inner_low):
            return inner_low, inner_high
    return low, high


@dataclass(frozen=True, slots=True)
class _Frame:
    """The plot area, which converts values to positions in the drawing.

    With ``doublings``, each doubling of x has the same width.
    """

    x_low: float
    x_high: float
    y_low: float
    y_high: float
    doublings: bool = False

    def at(self, x: float, y: float) -> Point:
        """Return the position (left, top) of the value (x, y) in the drawing."""
        x, low, high = map(math.log2, (x, self.x_low, self.x_high)) if self.doublings else (x, self.x_low, self.x_high)
        across = (x - low) / ((high - low) or 1)
        up = (y - self.y_low) / ((self.y_high - self.y_low) or 1)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    def axes(self, x_label: str, y_label: str, ticks_x: Sequence[float]) -> str:
        """Return the SVG of the grid lines, the tick labels and the axis labels."""
        rows = [self._y_tick(value) for value in _ticks(self.y_low, self.y_high)]
        columns = [self._x_tick(value) for value in _thinned(ticks_x)]
        middle = (LEFT + WIDTH - RIGHT) / 2
        labels = (
            f'<text class="axis" x="{middle}" y="{HEIGHT - 3}" text-anchor="middle">{_explained(x_label)}</text>'
            f'<text class="axis" x="{LEFT}" y="{TOP - 10}" text-anchor="start">{_explained(y_label)}</text>'
        )
        return "".join([*rows, *columns, labels])

    def mark(self, x: float, label: str, row: int) -> str:
        """Return the SVG of a vertical line at ``x`` with its label.

        ``row`` is the height of the label in lines of text: row 0 is directly above the x axis.
        """
        left, _ = self.at(x, self.y_low)
        anchor, shift = ("end", -4) if left > (LEFT + WIDTH) / 2 else ("start", 4)
        top = HEIGHT - BOTTOM - 6 - 13 * row
        return (
            f'<line class="mark" x1="{left:.1f}" x2="{left:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
            f'<text class="axis" x="{left + shift:.1f}" y="{top}" text-anchor="{anchor}">{_text(label)}</text>'
        )

    def _y_tick(self, value: float) -> str:
        _, y = self.at(self.x_low, value)
        return (
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="tick" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_short(value)}</text>'
        )

    def _x_tick(self, value: float) -> str:
        x, _ = self.at(value, self.y_low)
        y = HEIGHT - BOTTOM + 16
        return f'<text class="tick" x="{x:.1f}" y="{y}" text-anchor="middle">{_short(value)}</text>'


def _curve(curve: Line, number: int, frame: _Frame) -> list[str]:
    """Return the SVG of the band, the line and the dots of one curve."""
    parts: list[str] = []
    if curve.band:
        upper = [frame.at(x, high) for (x, _), (_, high) in zip(curve.points, curve.band, strict=True)]
        lower = [frame.at(x, low) for (x, _), (low, _) in zip(curve.points, curve.band, strict=True)]
        parts.append(f'<polygon class="band series{number}" points="{_path([*upper, *reversed(lower)])}"/>')
    spots = [frame.at(*point) for point in curve.points]
    parts.append(f'<polyline class="line series{number}" points="{_path(spots)}"/>')
    for (x, y), (left, top) in zip(curve.points, spots, strict=True):
        title = f"<title>{_text(curve.name)}: {x:g} → {y:.3f}</title>"
        parts.append(f'<circle class="dot series{number}" cx="{left:.1f}" cy="{top:.1f}" r="3">{title}</circle>')
    return parts


def _segment(kind: str, count: float, total: float) -> str:
    name, share = _text(kind), 100 * count / total
    return f'<span class="cut {name}" style="width:{share:.2f}%" title="{name}: {count:,.0f} ({share:.1f} %)"></span>'


def _shares(values: Sequence[float], low: float, high: float, bins: int) -> list[float]:
    """Return the share of the values in each bin; the outer bins include all values beyond them."""
    width = (high - low) / bins
    counts = [0] * bins
    for value in values:
        counts[min(max(int((value - low) / width), 0), bins - 1)] += 1
    return [count / max(len(values), 1) for count in counts]


def _steps(shares: Sequence[float], number: int, frame: _Frame) -> str:
    """Return the SVG outline of one histogram."""
    width = (frame.x_high - frame.x_low) / len(shares)
    start, floor = frame.at(frame.x_low, 0)
    corners = [(start, floor)]
    for index, share in enumerate(shares):
        left, top = frame.at(frame.x_low + index * width, share)
        right, _ = frame.at(frame.x_low + (index + 1) * width, share)
        corners += [(left, top), (right, top)]
    corners.append((corners[-1][0], floor))
    return f'<polygon class="area series{number}" points="{_path(corners)}"/>'


def _path(points: Sequence[Point]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _thinned(ticks: Sequence[float]) -> Sequence[float]:
    """Return at most ``MOST_X_TICKS`` evenly spaced ticks, including the first and the last."""
    if len(ticks) <= MOST_X_TICKS:
        return ticks
    last = MOST_X_TICKS - 1
    return [ticks[round(i * (len(ticks) - 1) / last)] for i in range(MOST_X_TICKS)]


def _ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return about ``count`` round numbers between ``low`` and ``high``."""
    if high <= low:
        return [low]
    raw = (high - low) / count
    power = 10 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(index * step, 10) for index in range(first, last + 1)]


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _explained(label: str) -> str:
    """Return the escaped ``label`` of an axis, with its explanation if the glossary has one."""
    explanation = explanation_of(label)
    return (f"<title>{_text(explanation)}</title>" if explanation else "") + _text(label)


def _text(text: str) -> str:
    return html.escape(text)


def _svg(parts: Sequence[str], label: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{_text(label)}">{"".join(parts)}</svg>'


def _legend(names: Sequence[str]) -> str:
    keys = [
        f'<span class="key"><i class="series{number}"></i>{_text(name)}</span>' for number, name in enumerate(names)
    ]
    return f'<div class="legend">{"".join(keys)}</div>' if len(names) > 1 else ""
