"""Draws the wall time and the CPU time of the engines at 64 connections in ``figures.json`` as an SVG picture.

python tests/benchmarks/peers/plot.py [docs/pictures/engines.svg]
"""

from __future__ import annotations

import html
import json
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
PICTURE = HERE.parents[2] / "docs" / "pictures" / "engines.svg"
WIDTH, LEFT, BAR, GAP, TOP = 760, 250, 13, 44, 46
CONNECTIONS = 64
COLOURS = {"wall": "#2f6fdb", "cpu": "#ad5412"}
LABELS = {"wall": "wall time, s", "cpu": "CPU time, s"}


def main() -> None:
    """Write the picture to the path in the command line, or to its default path."""
    picture = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE
    engines = json.loads((HERE / "figures.json").read_text("utf-8"))["engines"]
    picture.write_text(drawn([engine for engine in engines if engine["connections"] == CONNECTIONS]), "utf-8")


def drawn(engines: Sequence[dict]) -> str:
    """Return the picture: two bars per engine, with their values."""
    most = max(engine[name] for engine in engines for name in COLOURS)
    scale, height = (WIDTH - LEFT - 60) / most, TOP + GAP * len(engines)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13">',
        "<title>Wall time and CPU time of 8,000 completions at 64 connections</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for number, (name, colour) in enumerate(COLOURS.items()):
        x = LEFT + 140 * number
        parts.append(f'<rect x="{x}" y="16" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{x + 18}" y="26" fill="#1c2430">{LABELS[name]}</text>')
    for place, engine in enumerate(engines):
        y = TOP + GAP * place
        parts.append(
            f'<text x="{LEFT - 10}" y="{y + 17}" text-anchor="end" fill="#1c2430">{html.escape(engine["name"])}</text>'
        )
        for row, (name, colour) in enumerate(COLOURS.items()):
            width, top = scale * engine[name], y + (BAR + 2) * row
            parts.append(f'<rect x="{LEFT}" y="{top}" width="{width:.1f}" height="{BAR}" fill="{colour}"/>')
            parts.append(f'<text x="{LEFT + width + 6:.1f}" y="{top + 11}" fill="#1c2430">{engine[name]:g}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    main()
