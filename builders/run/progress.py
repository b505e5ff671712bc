"""Shows the progress of a running build: rows per stage, verdicts, requests, tokens, cost and remaining time.

On a terminal it is a live table; otherwise it prints one line every few seconds. Both are written to standard error, so
that standard output can be piped. The executors call ``show_progress``.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bestofn.builders.formats.terminal_text import unescaped, visible
from bestofn.builders.records import JsonObject, Row

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(slots=True)
class Progress:
    """The counts of a running build. ``total`` is the number of queries; None if it is not known."""

    total: int | None = None
    rows: Counter[str] = field(default_factory=Counter)  # stage -> rows done
    outcomes: Counter[str] = field(default_factory=Counter)  # verdict -> candidates
    skipped: int = 0  # rows that an earlier run had completed
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count_row(self, stage: str, added: Row) -> None:
        """Count one completed row of ``stage``, and the verdicts in the columns ``added``."""
        with self._lock:
            self.rows[stage] += 1
            for verdict in added.get("verdicts") or ():
                self.outcomes[verdict["outcome"]] += 1

    def add(self, rows: Mapping[str, int], outcomes: Mapping[str, int]) -> None:
        """Add the counts of another process: rows by stage, candidates by verdict."""
        with self._lock:
            self.rows.update(rows)
            self.outcomes.update(outcomes)

    def count_finished_rows(self, rows: int) -> None:
        """Count ``rows`` rows that an earlier run had completed."""
        with self._lock:
            self.skipped += rows


@contextlib.contextmanager
def show_progress(
    progress: Progress, stages: list[str], spending: Callable[[], JsonObject], every_s: float = 5.0
) -> Iterator[None]:
    """Show ``progress`` until the block ends. Without a terminal, print a line every ``every_s`` seconds.

    ``spending`` is a function that returns the requests, tokens and dollars so far.
    """
    started = time.monotonic()
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.live import Live

        with Live(
            get_renderable=lambda: _table(progress, stages, spending(), time.monotonic() - started),
            console=Console(file=unescaped(sys.stderr)),
            refresh_per_second=4,
        ):
            yield
        return
    stop = threading.Event()

    def print_lines() -> None:
        while not stop.wait(every_s):
            print(_line(progress, stages, spending(), time.monotonic() - started), file=sys.stderr, flush=True)

    printer = threading.Thread(target=print_lines, daemon=True)
    printer.start()
    try:
        yield
    finally:
        stop.set()
        printer.join()
        ended = {**spending(), "notes": ()}  # nothing waits any more
        print(_line(progress, stages, ended, time.monotonic() - started), file=sys.stderr, flush=True)


def _facts(progress: Progress, stages: list[str], spending: JsonObject, seconds: float) -> dict[str, str]:
    last = progress.rows[stages[-1]]
    done = progress.skipped + last
    facts = {"queries": f"{done:,}" + (f" of {progress.total:,}" if progress.total is not None else "")}
    for stage in stages[:-1]:
        facts[stage] = f"{progress.skipped + progress.rows[stage]:,}"
    facts["verdicts"] = " ".join(f"{name} {count:,}" for name, count in sorted(progress.outcomes.items())) or "none yet"
    requests = spending.get("requests", 0)
    facts["requests"] = f"{requests:,} ({requests / max(seconds, 1e-9):.1f}/s)"
    facts["tokens"] = f"{spending.get('tokens', 0):,}"
    facts["cost"] = f"${spending.get('usd', 0.0):.4f}"
    facts["time"] = _clock(seconds)
    if waiting := spending.get("notes"):
        facts["waiting"] = visible("; ".join(waiting))
    if progress.total is not None and last:
        facts["left"] = _clock(seconds / last * max(progress.total - done, 0))
    return facts


def _line(progress: Progress, stages: list[str], spending: JsonObject, seconds: float) -> str:
    return " | ".join(f"{key} {value}" for key, value in _facts(progress, stages, spending, seconds).items())


def _table(progress: Progress, stages: list[str], spending: JsonObject, seconds: float) -> Table:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold cyan", justify="right")
    table.add_column()
    for key, value in _facts(progress, stages, spending, seconds).items():
        table.add_row(key, value)
    return table


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
