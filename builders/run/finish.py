"""Ends a run: publishes its tables and writes its manifest.

``pipeline.py`` has run the shards. The executors call ``finish_run``; ``bestofn doctor`` calls ``publish_tables``.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bestofn.builders.arrow_types import count_rows
from bestofn.builders.errors import DamagedFile
from bestofn.builders.protocols import ReportsDropped
from bestofn.builders.records import JsonObject
from bestofn.builders.run import manifest
from bestofn.builders.run.disk import limits_as_machine_error
from bestofn.builders.run.fingerprints import fingerprint
from bestofn.builders.run.landing import Landed
from bestofn.builders.run.pipeline import Run, skipped_rows
from bestofn.builders.run.run_folder import delete_stale_files
from bestofn.builders.tables import candidate_table, checksums
from bestofn.builders.tables.candidate_table import costs_of
from bestofn.builders.tables.checksums import read_marker
from bestofn.builders.tables.flat_file import write_flat_file
from bestofn.builders.tables.parquet_files import table_files
from bestofn.builders.tables.views import VIEWS
from bestofn.builders.tables.writer import write_views

if TYPE_CHECKING:
    from bestofn.builders.analysis.run_figures import RunFigures

log = logging.getLogger(__name__)

FACTS = ("queries", "skipped", "dropped", "shards", "not_sent")  # entries of the manifest about the queries
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

    Parts and cache files that were computed with other settings are deleted. If the tables of the run are complete,
    undamaged and made of the same shards with the same settings, nothing is written. Raises ``MachineError`` if the
    disk is full or read-only.
    """
    facts: dict[str, Any] = {
        "queries": sum(count_rows(part) for part in parts),
        "skipped": skipped_rows(run.source) | ({NULL_ANSWERS: run.null_answers} if run.null_answers else {}),
        "dropped": list(run.source.dropped) if isinstance(run.source, ReportsDropped) else [],
        "shards": len(parts),
        "not_sent": run.not_sent,
    }
    spent = run.account.facts(run.spending())
    earlier = manifest.read_or_empty(run.out)
    if _is_published(run, earlier, _made_of(run, parts, facts)):
        log.info("The run is complete, and nothing has changed. No file was written.")
        return FinishedRun(earlier | spent)
    run.before_changes()
    delete_stale_files(run.out, parts)
    described = manifest.describe(run.config, state="complete", **facts, **spent)
    landed = None
    if run.second is not None and run.is_open:
        landing = run.loop.submit(run.second.finish_views(parts, described, run.table_settings))
        for module in SUMMARY_MODULES:  # meanwhile
            importlib.import_module(module)
        landed = landing.result()
    publish_tables(run, parts, described, landed)
    described["cost"] = costs_of(candidate_table.read(run.out))
    manifest.write(run.out, described)
    finished = FinishedRun(described)
    finished.figures = landed.figures if landed else None
    return finished


def _made_of(run: Run, parts: Sequence[Path], facts: JsonObject) -> str:
    """Return the fingerprint of all that the published tables and the manifest are made of.

    ``facts`` are facts about the queries, which are in the manifest.
    """
    shards = [(read_marker(part) or {}).get("part") for part in parts]
    config = manifest.describe(run.config, state="complete")["config"]
    return fingerprint(manifest.versions(), config, run.table_settings.config_hash, facts, shards)


def _is_published(run: Run, earlier: JsonObject, made_of: str) -> bool:
    """Return whether the tables of ``run`` are complete and undamaged, according to its manifest ``earlier``."""
    published = earlier.get("published") or {}
    if earlier.get("state") != "complete" or published.get("made_of") != made_of:
        return False
    try:
        checksums.check_tables(run.out)
        listed = checksums.table_checksums(run.out).keys()
    except DamagedFile as error:
        log.warning("%s is damaged: %s. The tables are written again from the shards.", error.file, error.problem)
        return False
    found = {file.relative_to(run.out).as_posix() for name in VIEWS for file in table_files(run.out / name)}
    return found == listed and published == _published(run, made_of)


def _published(run: Run, made_of: str) -> JsonObject:
    """Return the manifest's entry about the published tables, whose fingerprint is ``made_of``."""
    files = {"checksums": run.out / checksums.FILE, "flat_file": Path(run.config.get("flat_file") or "")}
    return {"made_of": made_of} | {name: checksums.checksum(file) for name, file in files.items() if file.is_file()}


def figures_of_finished(described: JsonObject, out: Path) -> RunFigures:
    """Return the figures of the run in the folder ``out``, for which an executor has returned ``described``."""
    from bestofn.builders.analysis.run_figures import figures_of_run

    known = described.figures if isinstance(described, FinishedRun) else None
    return known or figures_of_run(out, described)


def publish_tables(run: Run, parts: Sequence[Path], described: dict[str, Any], landed: Landed | None = None) -> None:
    """Write the published tables of ``parts``, their checksums and the flat file of the setting ``flat_file``.

    The rows by table and the fingerprint of the tables are added to the manifest ``described``. If ``landed`` is set,
    the second process has written the tables.
    """
    described["views"] = landed.rows if landed else write_views(parts, run.out, described, run.table_settings)
    files = [file for name in VIEWS for file in table_files(run.out / name)]
    manifest.write_text(run.out / checksums.FILE, checksums.of_tables(run.out, files))
    if flat_file := run.config.get("flat_file"):
        write_flat_file(candidate_table.read(run.out), Path(flat_file))
    facts = {name: described.get(name) for name in FACTS}
    described["published"] = _published(run, _made_of(run, parts, facts))
