"""``bestofn report RUN [OUT.html]``: one self-contained HTML page of a run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bestofn report", description="Write one self-contained HTML page of a run.")
    parser.add_argument("run", help="the run's folder; run=FOLDER is the same")
    parser.add_argument("out", nargs="?", help="where the page goes (default: RUN/report.html)")
    parser.add_argument(
        "--browse", type=int, default=700, help="queries shown one by one, an even sample (default 700)"
    )
    options = parser.parse_args(sys.argv[1:] if arguments is None else arguments)

    from bestofn.builders.errors import exit_on_error

    run = Path(options.run.removeprefix("run="))
    with exit_on_error():
        page = write(run, Path(options.out) if options.out else run / "report.html", browse=options.browse)
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
