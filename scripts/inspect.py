"""``bestofn inspect RUN [RUN …]``: prints the figures of one run, or one row per run for several runs.

RUN is the folder of a build or a Parquet file of candidates. A pattern such as ``runs/*`` is expanded.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from bestofn.builders.config.arguments import Arguments
from bestofn.builders.config.command import run_command
from bestofn.scripts.catalogue import INSPECT


def main(words: Sequence[str] | None = None) -> None:
    """Run ``bestofn inspect``. ``words`` are its command-line arguments; None reads ``sys.argv``."""
    run_command(INSPECT, inspect, words)


def inspect(arguments: Arguments) -> None:
    """Print the figures of the runs as tables or as JSON."""
    from bestofn.builders.analysis.run_figures import figures_of_run
    from bestofn.builders.report.inspect_text import print_run, print_runs
    from bestofn.builders.tables.candidate_table import runs_among

    resamples = arguments.number("resamples")
    runs = [figures_of_run(path, resamples=resamples) for path in runs_among(arguments.runs)]
    if arguments.flag("json"):
        print(json.dumps(runs if len(runs) > 1 else runs[0], indent=2, ensure_ascii=False, allow_nan=False))
    elif len(runs) == 1:
        print_run(runs[0])
    else:
        print_runs(runs)


if __name__ == "__main__":
    main()
