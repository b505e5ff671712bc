"""``bestofn report RUN [out=PAGE.html]``: writes one self-contained HTML page about a run."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path

from bestofn.builders.config.arguments import Arguments
from bestofn.builders.config.command import run_command
from bestofn.builders.errors import ConfigError
from bestofn.builders.formats.output_file import check_output_file
from bestofn.scripts.catalogue import REPORT


def main(words: Sequence[str] | None = None) -> None:
    """Run ``bestofn report``. ``words`` are its command-line arguments; None reads ``sys.argv``."""
    run_command(REPORT, report, words)


def report(arguments: Arguments) -> None:
    """Write the HTML page of a run and print its path."""
    out = arguments.text("out")
    if out and Path(out).is_dir():
        raise ConfigError(
            f"out is {out}, which is a folder; expected the file to write: out={Path(out) / 'report.html'}"
        )
    if out:
        check_output_file(Path(out), "out")
    page = write(arguments.run, Path(out) if out else arguments.run / "report.html", browse=arguments.number("browse"))
    print(f"{page} ({page.stat().st_size / 1e6:.1f} MB)")


def write(run: Path, page: Path, *, browse: int = 700) -> Path:
    """Write the report of ``run`` to the file ``page``. The page shows at most ``browse`` queries, evenly spaced.

    Raises ``ConfigError`` if the run has no finished shard.
    """
    from bestofn.builders.analysis.run_figures import figures_of_run
    from bestofn.builders.report import html_page
    from bestofn.builders.run import manifest
    from bestofn.builders.tables.shards import nested, parts_of

    parts = parts_of(run)
    described = manifest.read(run)
    figures = figures_of_run(run, described)
    every = max(1, math.ceil(figures.queries / browse))
    shown = itertools.islice(nested(parts), 0, None, every)
    manifest.write_text(page, html_page.page(figures, itertools.islice(shown, browse), described, run.name))
    return page


if __name__ == "__main__":
    main()
