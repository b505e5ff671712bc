"""Shows a run in a notebook: its figures, its first candidates, and links to its files."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from bestofn.builders.analysis.figures import Figures
from bestofn.builders.errors import SourceError
from bestofn.builders.records import Row
from bestofn.builders.report.headline import headline
from bestofn.builders.tables import candidate_table

SHOWN_ROWS = 5
SHOWN_CHARS = 160
COLUMNS = ("question", "answer", "verification_status", "reward_final", "model")


def run_html(figures: Figures, manifest: Row, run: Path) -> str:
    """Return the HTML of the run in the folder ``run``. All texts are escaped."""
    from markupsafe import Markup

    def row(tag: str, texts: list[str]) -> Markup:
        cells = Markup("").join(Markup("<{0}>{1}</{0}>").format(tag, text) for text in texts)
        return Markup("<tr>{}</tr>").format(cells)

    rows = [row("td", [_shown(one[name]) for name in COLUMNS]) for one in _first_rows(run)]
    files = [run / "report.html", run / "manifest.json", *sorted(run.glob("*/*.parquet"))]
    links = Markup("").join(
        Markup('<li><a href="{}">{}</a></li>').format(file.resolve().as_uri(), file.relative_to(run))
        for file in files
        if file.exists() and file.parent.name != "shards"
    )
    text = headline(figures, manifest, run).strip()
    table = Markup("<table>{}{}</table>").format(row("th", list(COLUMNS)), Markup("").join(rows))
    return str(Markup("<pre>{}</pre>{}<ul>{}</ul>").format(text, table, links))


def _first_rows(run: Path) -> list[Row]:
    """Return the first candidates; [] if the run has no table of them yet."""
    try:
        batches = candidate_table.read(run).batches(COLUMNS)
    except SourceError:
        return []
    return list(islice((row for batch in batches for row in batch.to_pylist()), SHOWN_ROWS))


def _shown(value: object) -> str:
    text = "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
    return text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 1]}…"
