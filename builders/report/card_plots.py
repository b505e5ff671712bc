"""The card's plots as SVG files that stand alone: pass@k, and what passed by candidate index."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bestofn.builders.report import charts
from bestofn.builders.run import manifest

FOLDER = "plots"
STYLE = """
.grid { stroke: #dfe3e8; } .tick, .axis { fill: #5b6675; font: 11px sans-serif; }
.line { fill: none; stroke: #2f6fdb; stroke-width: 2.2; } .dot { fill: #2f6fdb; } .band { fill: #2f6fdb; opacity: .16; }
"""


def write(folder: Path, found: Mapping[str, Any]) -> dict[str, str]:
    """Write the plots of the figures ``found`` below ``folder``: path -> what it shows."""
    written = {}
    for name, (about, svg) in plots(found).items():
        path = f"{FOLDER}/{name}.svg"
        manifest.write_text(folder / path, svg)
        written[path] = about
    return written


def plots(found: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Name -> what it shows and its SVG; a curve of one point is left out."""
    drawn = {}
    curve = found["pass_at"]
    if len(curve) > 1:
        line = charts.Line("pass@k", [(p["k"], p["mean"]) for p in curve], [(p["low"], p["high"]) for p in curve])
        drawn["pass_at_k"] = ("pass@k with its 95 % interval", alone([line], "k", "pass@k"))
    indices = found["by_index"]
    if len(indices) > 1:
        line = charts.Line("verified", [(float(index), row["rate"]) for index, row in indices.items()])
        drawn["by_index"] = ("share verified by candidate index", alone([line], "candidate index", "share verified"))
    return drawn


def alone(lines: list[charts.Line], x_label: str, y_label: str) -> str:
    """The curves as a file of its own, on white so that it can be read on any page."""
    svg = charts.lines(lines, x_label, y_label, y_range=(0.0, 1.0))
    head, rest = svg.split(">", 1)
    size = f'xmlns="http://www.w3.org/2000/svg" width="{charts.WIDTH}" height="{charts.HEIGHT}"'
    return f'{head} {size}><style>{STYLE}</style><rect width="100%" height="100%" fill="#fff"/>{rest}\n'
