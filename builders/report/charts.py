"""Small charts as inline SVG: lines with bands, stacked bars, histograms. Colours are CSS classes of the page."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 460, 240
LEFT, RIGHT, TOP, BOTTOM = 46, 20, 24, 34


@dataclass(frozen=True, slots=True)
class Line:
    """One curve: ``points`` (x, y), ``band`` (low, high) a point, or none."""

    name: str
    points: Sequence[tuple[float, float]]
    band: Sequence[tuple[float, float]] = ()


def lines(curves: Sequence[Line], x_label: str, y_label: str, *, y_range: tuple[float, float] | None = None) -> str:
    """Curves over a shared x axis."""
    points = [point for curve in curves for point in curve.points]
    if not points:
        return ""
    xs = [x for x, _ in points]
    ys = [y for _, y in points] + [end for curve in curves for band in curve.band for end in band]
    low, high = y_range or (min(ys), max(ys))
    frame = _Frame(min(xs), max(xs), low, high)
    parts = [frame.axes(x_label, y_label, ticks_x=sorted(set(xs)))]
    for number, curve in enumerate(curves):
        if curve.band:
            upper = [frame.at(x, band[1]) for (x, _), band in zip(curve.points, curve.band, strict=True)]
            lower = [frame.at(x, band[0]) for (x, _), band in zip(curve.points, curve.band, strict=True)]
            corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in [*upper, *reversed(lower)])
            parts.append(f'<polygon class="band series{number}" points="{corners}"/>')
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (frame.at(*point) for point in curve.points))
        parts.append(f'<polyline class="line series{number}" points="{path}"/>')
        for x, y in curve.points:
            spot = frame.at(x, y)
            title = f"{html.escape(curve.name)}: {x:g} → {y:.3f}"
            place = f'cx="{spot[0]:.1f}" cy="{spot[1]:.1f}" r="3"'
            parts.append(f'<circle class="dot series{number}" {place}><title>{title}</title></circle>')
    return _svg(parts) + _legend([curve.name for curve in curves])


def stacked(bars: Mapping[str, Mapping[str, float]], classes: Sequence[str]) -> str:
    """One horizontal bar a key, cut by the share of each class (a CSS class of the same name)."""
    rows = []
    for name, counts in bars.items():
        total = sum(counts.values()) or 1
        cuts = "".join(_cut(kind, counts[kind], total) for kind in classes if counts.get(kind))
        rows.append(
            f'<div class="bar"><span class="name">{html.escape(name)}</span><span class="track">{cuts}</span></div>'
        )
    legend = "".join(
        f'<span class="key"><i class="cut {html.escape(kind)}"></i>{html.escape(kind)}</span>' for kind in classes
    )
    return f'<div class="bars">{"".join(rows)}</div><div class="legend">{legend}</div>'


def _cut(kind: str, count: float, total: float) -> str:
    name, share = html.escape(kind), 100 * count / total
    return f'<span class="cut {name}" style="width:{share:.2f}%" title="{name}: {count:,.0f} ({share:.1f} %)"></span>'


def histogram(
    values: Sequence[float], x_label: str, *, bins: int = 20, x_range: tuple[float, float] | None = None
) -> str:
    """Shares of ``values`` in equal bins."""
    return histograms({"": values}, x_label, bins=bins, x_range=x_range)


def histograms(
    groups: Mapping[str, Sequence[float]],
    x_label: str,
    *,
    bins: int = 20,
    x_range: tuple[float, float] | None = None,
) -> str:
    """Shares of each group's values in the same equal bins, as steps over one another."""
    everything = [value for values in groups.values() for value in values]
    if not everything:
        return ""
    low, high = x_range or (min(everything), max(everything))
    if low == high:
        low, high = low - 0.5, high + 0.5
    step = (high - low) / bins
    shares: dict[str, list[float]] = {}
    for name, values in groups.items():
        counts = [0] * bins
        for value in values:
            counts[min(int((value - low) / step), bins - 1)] += 1
        shares[name] = [count / max(len(values), 1) for count in counts]
    frame = _Frame(low, high, 0, max(max(share) for share in shares.values()) or 1)
    parts = [frame.axes(x_label, "share", ticks_x=_ticks(low, high))]
    floor = frame.at(low, 0)[1]
    for number, share in enumerate(shares.values()):
        corners = [(frame.at(low, 0)[0], floor)]
        for index, value in enumerate(share):
            left, top = frame.at(low + index * step, value)
            right, _ = frame.at(low + (index + 1) * step, value)
            corners += [(left, top), (right, top)]
        corners.append((corners[-1][0], floor))
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
        parts.append(f'<polygon class="area series{number}" points="{path}"/>')
    return _svg(parts) + _legend([name for name in groups if name])


@dataclass(frozen=True, slots=True)
class _Frame:
    x_low: float
    x_high: float
    y_low: float
    y_high: float

    def at(self, x: float, y: float) -> tuple[float, float]:
        across = (x - self.x_low) / ((self.x_high - self.x_low) or 1)
        up = (y - self.y_low) / ((self.y_high - self.y_low) or 1)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    def axes(self, x_label: str, y_label: str, ticks_x: Sequence[float]) -> str:
        parts = []
        for value in _ticks(self.y_low, self.y_high):
            _, y = self.at(self.x_low, value)
            parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(f'<text class="tick" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_short(value)}</text>')
        shown = ticks_x if len(ticks_x) <= 9 else [ticks_x[round(i * (len(ticks_x) - 1) / 8)] for i in range(9)]
        for value in shown:
            x, _ = self.at(value, self.y_low)
            parts.append(
                f'<text class="tick" x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{_short(value)}</text>'
            )
        middle = (LEFT + WIDTH - RIGHT) / 2
        parts.append(
            f'<text class="axis" x="{middle}" y="{HEIGHT - 3}" text-anchor="middle">{html.escape(x_label)}</text>'
        )
        parts.append(f'<text class="axis" x="{LEFT}" y="{TOP - 10}" text-anchor="start">{html.escape(y_label)}</text>')
        return "".join(parts)


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About ``count`` round numbers from ``low`` to ``high``."""
    if high <= low:
        return [low]
    raw = (high - low) / count
    power = 10 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(index * step, 10) for index in range(first, last + 1)]


def _svg(parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{"".join(parts)}</svg>'


def _legend(names: Sequence[str]) -> str:
    keys = "".join(
        f'<span class="key"><i class="series{number}"></i>{html.escape(name)}</span>'
        for number, name in enumerate(names)
    )
    return f'<div class="legend">{keys}</div>' if len(names) > 1 else ""
