"""Logs the metrics of a run to Weights & Biases or trackio, with their own clients.

Both clients read their own environment variables: ``WANDB_MODE=offline`` writes to files only, and ``TRACKIO_DIR`` is
the folder of trackio.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal, Protocol

from bestofn.builders.errors import ConfigError
from bestofn.builders.records import JsonObject

log = logging.getLogger(__name__)
TrackerName = Literal["wandb", "trackio"]
REMEDIES: Mapping[TrackerName, str] = {
    "wandb": "Run `wandb login`, set WANDB_MODE=offline, or leave out log.tracker.",
    "trackio": "Check the folder TRACKIO_DIR, or leave out log.tracker.",
}


class Tracked(Protocol):
    """A run in an experiment tracker."""

    def log(self, metrics: Mapping[str, float]) -> object:
        """Record one value per metric."""
        ...

    def finish(self) -> object:
        """Send the remaining metrics, and close the run."""
        ...


@contextlib.contextmanager
def tracked(
    tracker: TrackerName, project: str, out: Path, config: JsonObject
) -> Iterator[Callable[[JsonObject], None]]:
    """Yield a function that logs metrics of the run in ``out``. In the tracker, the run has the name of the folder.

    ``config`` must not contain credentials. Raises ``ConfigError`` if the client is not installed or cannot start.
    """
    try:
        client = importlib.import_module(tracker)
    except ImportError as error:
        raise ConfigError(
            f"log.tracker={tracker} needs a package that is not installed. Run `pip install {tracker}`."
        ) from error
    files = {"dir": str(out / "logs")} if tracker == "wandb" else {}
    try:
        run: Tracked = client.init(project=project, name=out.name, config=dict(config), **files)
    except Exception as error:  # the clients raise errors of many types, for example without a key
        reason = str(error).rstrip(".")
        raise ConfigError(f"log.tracker={tracker} cannot start: {reason}. {REMEDIES[tracker]}") from error
    try:
        yield lambda metrics: _log(run, tracker, metrics)
    finally:
        with _problems_named(tracker):
            run.finish()


def _log(run: Tracked, tracker: str, metrics: JsonObject) -> None:
    with _problems_named(tracker):
        run.log(dict(numbers(metrics)))


@contextlib.contextmanager
def _problems_named(tracker: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # a tracker never stops a run; its error is reported
        log.warning("The metrics were not logged to %s: %s: %s", tracker, type(error).__name__, error)


def numbers(metrics: JsonObject, prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yield (name, value) for each number in ``metrics``. A nested number has a name such as ``tokens/input``."""
    for key, value in metrics.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from numbers(value, f"{name}/")
        elif isinstance(value, list | tuple):
            for one in value:
                yield from numbers(one, f"{name}/{one.get('service', '')}/")
        elif isinstance(value, int | float):
            yield name, float(value)
