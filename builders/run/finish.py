"""Ends a run: publishes its tables and writes its manifest.

``pipeline.py`` has run the shards. The executors call ``finish_run``; ``bestofn doctor`` calls ``publish_tables``.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bestofn.builders.arrow_types import count_rows
from bestofn.builders.protocols import ReportsDropped
from bestofn.builders.records import JsonObject
from bestofn.builders.run import manifest
from bestofn.builders.run.disk import limits_as_machine_error
from bestofn.builders.run.landing import Landed
from bestofn.builders.run.pipeline import Run, skipped_rows
from bestofn.builders.run.run_folder import delete_stale_files
from bestofn.builders.tables import candidate_table, checksums
from bestofn.builders.tables.candidate_table import costs_of
from bestofn.builders.tables.flat_file import write_flat_file
from bestofn.builders.tables.parquet_files import table_files
from bestofn.builders.tables.views import VIEWS
from bestofn.builders.tables.writer import write_views

if TYPE_CHECKING:
    from bestofn.builders.analysis.run_figures import RunFigures

NULL_ANSWERS = "recorded answers that are null"
SUMMARY_MODULES = ("bestofn.builders.analysis.problems", "numpy.random", "numpy.ma")
"""Modules that the summary of a build needs."""


class FinishedRun(dict[str, Any]):
    """The manifest of a finished run.

    ``figures`` are the figures of its tables; None if they were not computed while the tables were written.
    """

    figures: RunFigures | None = None


@limits_as_machine_error()
def finish_run(run: Run, parts: Sequence[Path]) -> FinishedRun:
    """Write the published views of ``parts`` and the manifest, and return the manifest.

    Parts and cache files that were computed with other settings are deleted. Raises ``MachineError`` if the disk is
    full or read-only.
    """
    delete_stale_files(run.out, parts)
    facts = {
        "queries": sum(count_rows(part) for part in parts),
        "skipped": skipped_rows(run.source) | ({NULL_ANSWERS: run.null_answers} if run.null_answers else {}),
        "dropped": list(run.source.dropped) if isinstance(run.source, ReportsDropped) else [],
        **run.account.facts(run.spending()),
        "shards": len(parts),
        "not_sent": run.not_sent,
    }
    described = manifest.describe(run.config, state="complete", **facts)
    landed = None
    if run.second is not None and run.is_open:
        landing = run.loop.submit(run.second.finish_views(parts, described, run.table_settings))
        for module in SUMMARY_MODULES:  # meanwhile
            importlib.import_module(module)
        landed = landing.result()
    described["views"] = publish_tables(run, parts, described, landed)
    described["cost"] = costs_of(candidate_table.read(run.out))
    manifest.write(run.out, described)
    finished = FinishedRun(described)
    finished.figures = landed.figures if landed else None
    return finished


def figures_of_finished(described: JsonObject, out: Path) -> RunFigures:
    """Return the figures of the run in the folder ``out``, for which an executor has returned ``described``."""
    from bestofn.builders.analysis.run_figures import figures_of_run

    known = described.figures if isinstance(described, FinishedRun) else None
    return known or figures_of_run(out, described)


def publish_tables(
    run: Run, parts: Sequence[Path], described: JsonObject, landed: Landed | None = None
) -> Mapping[str, int]:
    """Write the published tables of ``parts``, their checksums and the flat file of the setting ``flat_file``.

    Returns the rows by table, for the manifest. If ``landed`` is set, the second process has written the tables.
    """
    views = landed.rows if landed else write_views(parts, run.out, described, run.table_settings)
    files = [file for name in VIEWS for file in table_files(run.out / name)]
    manifest.write_text(run.out / checksums.FILE, checksums.of_tables(run.out, files))
    if flat_file := run.config.get("flat_file"):
        write_flat_file(candidate_table.read(run.out), Path(flat_file))
    return views
