"""``bestofn report RUN [out=PAGE.html]``: one self-contained HTML page of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bestofn.builders.config.arguments import Arguments
from bestofn.builders.config.command import run_command
from bestofn.scripts.catalogue import REPORT


def main(words: Sequence[str] | None = None) -> None:
    """Run ``bestofn report`` with the words of a command line."""
    run_command(REPORT, report, words)


def report(arguments: Arguments) -> None:
    """Write the page of a run and print where it is."""
    out = arguments.text("out")
    page = write(arguments.run, Path(out) if out else arguments.run / "report.html", browse=arguments.number("browse"))
    print(f"{page} ({page.stat().st_size / 1e6:.1f} MB)")


def write(run: Path, page: Path, *, browse: int = 700) -> Path:
    """Write the report of ``run`` to ``page``. Raises ``ConfigError`` when the folder holds no finished shard."""
    from bestofn.builders.report import html_page as html_report
    from bestofn.builders.run import manifest
    from bestofn.builders.tables import views

    parts = views.parts_of(run)
    described = manifest.read(run)
    described.setdefault("queries", sum(1 for _ in views.nested(parts)))
    manifest.write_text(page, html_report.page(views.nested(parts), described, run.name, browse=browse))
    return page


if __name__ == "__main__":
    main()
