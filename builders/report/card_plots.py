"""Draws the plots of the dataset card as SVG files: pass@k, and the share of verified candidates by index."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from bestofn.builders.analysis.figures_json import RunJson
from bestofn.builders.report import charts
from bestofn.builders.run import manifest

FOLDER = "plots"
STYLE = """
.grid { stroke: #dfe3e8; } .tick, .axis { fill: #5b6675; font: 11px sans-serif; }
.line { fill: none; stroke: #2f6fdb; stroke-width: 2.2; } .dot { fill: #2f6fdb; } .band { fill: #2f6fdb; opacity: .16; }
"""


class Plot(NamedTuple):
    """One plot: its file name without extension, its description (``about``) and its SVG text."""

    name: str
    about: str
    svg: str


def write(folder: Path, figures: RunJson) -> dict[str, str]:
    """Write the plots of a run below ``folder``. Returns a dict from the path of each plot to its description."""
    written: dict[str, str] = {}
    for plot in plots(figures):
        path = f"{FOLDER}/{plot.name}.svg"
        manifest.write_text(folder / path, plot.svg)
        written[path] = plot.about
    return written


def plots(figures: RunJson) -> list[Plot]:
    """Return the plots of pass@k and of the share of verified candidates by candidate index.

    A plot with fewer than two points is left out.
    """
    drawn: list[Plot] = []
    curve = figures["pass_at"]
    shares = [(float(index), row["rate"]) for index, row in figures["by_index"].items() if row["rate"] is not None]
    if len(curve) > 1:
        points = [(float(point["k"]), point["mean"]) for point in curve]
        line = charts.Line("pass@k", points, [(point["low"], point["high"]) for point in curve])
        drawn.append(
            Plot("pass_at_k", "pass@k with its 95 % interval", standalone(line, "k", "pass@k", doublings=True))
        )
    if len(shares) > 1:
        line = charts.Line("verified", shares)
        svg = standalone(line, "candidate index", "share verified")
        drawn.append(Plot("by_index", "verified share by candidate index", svg))
    return drawn


def standalone(line: charts.Line, x_label: str, y_label: str, *, doublings: bool = False) -> str:
    """Return a plot of ``line`` as the text of an SVG file that contains its style and a white background."""
    svg = charts.lines([line], x_label, y_label, y_range=(0.0, 1.0), doublings=doublings)
    head, rest = svg.split(">", 1)
    size = f'xmlns="http://www.w3.org/2000/svg" width="{charts.WIDTH}" height="{charts.HEIGHT}"'
    return f'{head} {size}><style>{STYLE}</style><rect width="100%" height="100%" fill="#fff"/>{rest}\n'
