"""One process working on a run: holds the lock of the run's folder and records the state in the manifest.

Both executors (``builders.executors``) run a build inside ``run_session``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from bestofn.builders.records import JsonObject
from bestofn.builders.run.disk import disk_full_as_machine_error
from bestofn.builders.run.pipeline import Run, prepared_run, write_state
from bestofn.builders.run.run_folder import create_run_folder
from bestofn.builders.run.run_lock import run_lock


@contextlib.contextmanager
def run_session(config: JsonObject, out: Path) -> Iterator[Run]:
    """Yield the run that ``config`` describes, with its folder ``out`` created and locked.

    During the block the state in the manifest is ``running``; if the block raises, ``interrupted``. Raises
    ``ConfigError`` if a setting is wrong, and ``MachineError`` if the folder cannot be written or another process works
    in it.
    """
    with prepared_run(config, out) as run, run_lock(out) as lock, disk_full_as_machine_error():
        create_run_folder(out)
        lock.progress = lambda: progress_of(run)
        lock.on_lost.append(run.loop.cancel)
        try:
            write_state(run, "running")
            yield run
        except BaseException:
            lock.raise_if_lost()
            write_state(run, "interrupted")
            raise


def progress_of(run: Run) -> JsonObject:
    """Return what ``bestofn status`` shows about a run: queries, rows per stage, verdicts and spending."""
    progress, spending = run.progress, run.spending()
    return {
        "total": progress.total,
        "completed_before": progress.skipped,
        "stages": {name: progress.rows[name] for name in run.stage_names},
        "outcomes": dict(progress.outcomes),
        "requests": spending.get("requests", 0),
        "usd": spending.get("usd", 0.0),
    }
