"""Writes the log and the metrics of a run into ``RUN/logs`` while the run works.

    build.log       the messages of ``bestofn build``: one line per message, with time and level
    build.jsonl     instead of build.log with ``log.json=true``: one JSON object per message
    regenerate.log  the messages of ``bestofn regenerate``, as build.log or build.jsonl
    metrics.jsonl   the state of the run every ``metrics_s`` seconds (``builders.run.metrics``)
    metrics.prom    the last state, in the text format of Prometheus

Used by ``builders.run.session`` and ``builders.run.regenerate``.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Literal

from bestofn.builders.errors import BestofnError
from bestofn.builders.records import JsonObject
from bestofn.builders.redaction.secrets import redacted_text
from bestofn.builders.run.metrics import Metrics, prometheus_text
from bestofn.builders.telemetry.trackers import TrackerName

FOLDER = "logs"
ONLY_IN_FILE = {"terminal": False}  # ``extra`` of messages that the terminal does not show
LOG_BYTES, LOG_FILES = 50_000_000, 3  # a larger log is continued in a new file; the oldest files are deleted
TRACKED_EVERY_S = 10.0  # without ``metrics_s``
log = logging.getLogger(__name__)


class RunLog:
    """Settings of the log. ``metrics_s`` is the time between two records of the metrics; 0 writes none.

    With ``level="debug"``, the log contains each failed attempt to get a reply. With ``otel``, spans and metrics are
    exported (``telemetry.otel``). ``tracker`` also gets the metrics, in its ``project`` (``telemetry.trackers``).
    """

    def __init__(
        self,
        level: Literal["debug", "info", "warning", "error"] = "info",
        json: bool = False,
        metrics_s: float = 10.0,
        otel: bool = False,
        tracker: TrackerName | None = None,
        project: str = "bestofn",
    ) -> None:
        if metrics_s < 0:
            raise ValueError(f"metrics_s is {metrics_s}; expected at least 0")
        self.level = logging.getLevelName(level.upper())
        self.json = json
        self.metrics_s = metrics_s
        self.otel = otel
        self.tracker: TrackerName | None = tracker
        self.project = project

    @contextlib.contextmanager
    def recording(
        self, out: Path, metrics: Callable[[], Metrics], command: str = "build", config: JsonObject | None = None
    ) -> Iterator[None]:
        """Write the log of ``command`` and the metrics of the run in the folder ``out`` during the block.

        ``config`` is the configuration without credentials, for the tracker.
        """
        folder = out / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        handler = _LogFile(folder / f"{command}.{'jsonl' if self.json else 'log'}")
        handler.setFormatter(_JsonLines() if self.json else _TextLines())
        handler.setLevel(self.level)
        with _attached(handler), contextlib.ExitStack() as stack:
            stack.enter_context(self._exported(out, metrics, command))
            stack.enter_context(self._tracked(out, metrics, config or {}))
            stack.enter_context(_every(self.metrics_s, _MetricsFiles(folder, metrics)))
            log.info("The command %s in %s starts.", command, out, extra=ONLY_IN_FILE)
            try:
                yield
            except BaseException as error:
                known = isinstance(error, BestofnError | KeyboardInterrupt)
                reason = f"{type(error).__name__}: {error}".rstrip(": ")
                log.error("The command %s stops. %s", command, reason, exc_info=not known, extra=ONLY_IN_FILE)
                raise
            log.info("The command %s has finished.", command, extra=ONLY_IN_FILE)

    @contextlib.contextmanager
    def _tracked(self, out: Path, metrics: Callable[[], Metrics], config: JsonObject) -> Iterator[None]:
        if self.tracker is None:
            yield
            return
        from bestofn.builders.telemetry.trackers import tracked

        with (
            tracked(self.tracker, self.project, out, config) as track,
            _every(self.metrics_s or TRACKED_EVERY_S, lambda: track(metrics())),
        ):
            yield

    def _exported(self, out: Path, metrics: Callable[[], Metrics], command: str) -> AbstractContextManager[None]:
        if not self.otel:
            return contextlib.nullcontext()
        from bestofn.builders.telemetry.otel import exporting

        return exporting(command, {"bestofn.run": out.name}, metrics, self.metrics_s)


class _LogFile(RotatingFileHandler):
    """A log file. If the file cannot be written, one warning is printed and the run continues without this file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, maxBytes=LOG_BYTES, backupCount=LOG_FILES, encoding="utf-8", errors="backslashreplace")

    def handleError(self, record: logging.LogRecord) -> None:
        """Stop writing after the first error."""
        logging.getLogger().removeHandler(self)
        log.warning("The log file %s cannot be written; the run continues without it.", self.baseFilename)


class _TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        message = super().format(record).replace("\n", "\n    ")
        return redacted_text(
            f"{_time_of(record)} {record.levelname:<7} {record.name.removeprefix('bestofn.')}: {message}"
        )


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": _time_of(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["exception"] = record.exc_text or self.formatException(record.exc_info)
        return redacted_text(json.dumps(entry, ensure_ascii=False))


def _time_of(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


@contextlib.contextmanager
def _attached(handler: logging.Handler) -> Iterator[None]:
    """Send the messages of bestofn, and warnings of other packages, to ``handler`` during the block."""
    root, own = logging.getLogger(), logging.getLogger("bestofn")
    level = own.level
    for other in root.handlers:
        other.setLevel(max(other.level, logging.INFO))  # the terminal shows no debug messages
    own.setLevel(min(handler.level, own.getEffectiveLevel()))
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        own.setLevel(level)
        with contextlib.suppress(OSError):  # the disk is full; ``_LogFile.handleError`` has reported it
            handler.close()


class _MetricsFiles:
    """Writes the current metrics to both files."""

    def __init__(self, folder: Path, metrics: Callable[[], Metrics]) -> None:
        self._folder = folder
        self._metrics = metrics

    def __call__(self) -> None:
        metrics = self._metrics()
        with (self._folder / "metrics.jsonl").open("a", encoding="utf-8") as file:
            file.write(redacted_text(json.dumps(metrics, ensure_ascii=False)) + "\n")
        new = self._folder / "metrics.prom.tmp"
        new.write_text(redacted_text(prometheus_text(metrics)), "utf-8")
        new.replace(self._folder / "metrics.prom")  # a reader never sees half of the file


@contextlib.contextmanager
def _every(seconds: float, write: Callable[[], None]) -> Iterator[None]:
    """Call ``write`` every ``seconds`` in a thread, and once at the end. If writing fails, log one warning and stop."""
    stop = threading.Event()

    def work() -> None:
        ended = False
        while not ended:
            ended = stop.wait(seconds)
            try:
                write()
            except OSError as error:
                log.warning("The metrics cannot be written (%s); the run continues without them.", error)
                return

    thread = threading.Thread(target=work, name="metrics", daemon=True)
    if seconds:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        if seconds:
            thread.join()
