"""Shows the progress of a running build: a bar per stage, verdicts, pass rate, errors, tokens, cost and remaining time.

On a terminal it is a live table, in a notebook a live HTML table; otherwise it prints one line every few seconds. Text
is written to standard error, so that standard output can be piped. The executors call ``show_progress``. The state is
also in the note of the run's lock, from which ``bestofn status`` and the live report read it.
"""

from __future__ import annotations

import contextlib
import html
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO, TypedDict, cast

from bestofn.builders.formats.terminal_text import unescaped, visible
from bestofn.builders.records import JsonObject, Row

if TYPE_CHECKING:
    from rich.table import Table

BAR = 28  # width of a bar in characters


class ProgressState(TypedDict):
    """The progress of a build as plain data.

    ``completed_before`` counts the queries that earlier commands completed; all other counts are of this process.
    ``total`` and ``left_s`` are None if they are not known; ``left_usd`` is None without a budget. ``failures`` maps
    each cause to a number of failed requests, retries included. ``waiting`` says what requests wait for.
    """

    total: int | None
    completed_before: int
    stages: Mapping[str, int]
    outcomes: Mapping[str, int]
    requests: int
    tokens: int
    usd: float
    left_usd: float | None
    failures: Mapping[str, int]
    waiting: Sequence[str]
    seconds: float
    left_s: float | None


@dataclass(slots=True)
class Progress:
    """The counts of a running build. ``total`` is the number of queries; None if it is not known."""

    total: int | None = None
    budget_usd: float | None = None
    rows: Counter[str] = field(default_factory=Counter)  # stage -> rows done
    outcomes: Counter[str] = field(default_factory=Counter)  # verdict -> candidates
    skipped: int = 0  # rows that an earlier run had completed
    _started: float = field(default_factory=time.monotonic)
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

    def state(self, stages: Sequence[str], spending: JsonObject) -> ProgressState:
        """Return the present state. ``spending`` has the counts of ``Ledger.totals``."""
        seconds = time.monotonic() - self._started
        usd = float(spending.get("usd") or 0.0)
        paid = usd + float(spending.get("usd_before") or 0.0)
        with self._lock:
            return {
                "total": self.total,
                "completed_before": self.skipped,
                "stages": {name: self.rows[name] for name in stages},
                "outcomes": dict(self.outcomes),
                "requests": int(spending.get("requests") or 0),
                "tokens": int(spending.get("tokens") or 0),
                "usd": usd,
                "left_usd": None if self.budget_usd is None else max(self.budget_usd - paid, 0.0),
                "failures": dict(spending.get("failures") or {}),
                "waiting": list(spending.get("notes") or ()),
                "seconds": round(seconds, 1),
                "left_s": self._left_s(seconds, [self.rows[name] for name in stages]),
            }

    def _left_s(self, seconds: float, rows: Sequence[int]) -> float | None:
        """Estimate the remaining time in seconds; None if no row is done or the total is not known.

        The estimate uses the last stage. If this stage has no row yet, it uses the mean of all stages that have begun.
        """
        begun = [count for count in rows if count]
        if self.total is None or not begun:
            return None
        done = rows[-1] or sum(begun) / len(begun)
        return round(seconds / done * max(self.total - self.skipped - done, 0), 1)


@contextlib.contextmanager
def show_progress(
    progress: Progress, stages: list[str], spending: Callable[[], JsonObject], every_s: float = 5.0
) -> Iterator[None]:
    """Show ``progress`` until the block ends. Without a terminal, print a line every ``every_s`` seconds.

    ``spending`` is a function that returns the requests, tokens and dollars so far.
    """
    if sys.stderr is not None and sys.stderr.isatty():
        from rich.console import Console
        from rich.live import Live

        with Live(
            get_renderable=lambda: _table(progress.state(stages, spending())),
            console=Console(file=cast("TextIO", _LastingStream(unescaped(sys.stderr)))),
            refresh_per_second=4,
        ):
            yield
        return
    show = _notebook_display() or _print_line
    stop = threading.Event()

    def show_until_stopped() -> None:
        while not stop.wait(every_s if show is _print_line else 1.0):
            show(progress.state(stages, spending()))

    printer = threading.Thread(target=show_until_stopped, daemon=True)
    printer.start()
    try:
        yield
    finally:
        stop.set()
        printer.join()
        show(progress.state(stages, {**spending(), "notes": ()}))  # nothing waits any more


@contextlib.contextmanager
def _unless_gone() -> Iterator[None]:
    """Ignore an ``OSError`` in the block, for example because the terminal is gone, so that the run continues.

    Only a closed pipe ends the run, as usual for commands.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError:
        return


class _LastingStream:
    """A stream to a terminal. If the terminal is gone, it discards all further output."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with _unless_gone():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with _unless_gone():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _print_line(state: ProgressState) -> None:
    if sys.stderr is not None:
        with _unless_gone():
            print(progress_line(state), file=sys.stderr, flush=True)


def _notebook_display() -> Callable[[ProgressState], None] | None:
    """Return a function that shows the state in the output of the notebook's cell; None outside of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import HTML, DisplayHandle  # present in every notebook

    handle = DisplayHandle()
    handle.display(HTML(""))
    return lambda state: handle.update(HTML(progress_html(state)))


def progress_line(state: ProgressState) -> str:
    """Return the progress as one line of text."""
    before = state["completed_before"]
    *earlier, last = state["stages"] or ("queries",)
    done = before + state["stages"].get(last, 0)
    texts = {"queries": f"{done:,}" + (f" of {state['total']:,}" if state["total"] is not None else "")}
    texts |= {stage: f"{before + state['stages'][stage]:,}" for stage in earlier}
    return " | ".join(f"{key} {value}" for key, value in {**texts, **_facts(state)}.items())


def progress_html(state: ProgressState) -> str:
    """Return the progress as an HTML table with a bar per stage."""
    rows = "".join(
        _html_row(name, f"<progress max='1' value='{share:.4f}'></progress> {text}")
        for name, share, text in _bars(state)
    )
    rows += "".join(_html_row(name, html.escape(text)) for name, text in _facts(state).items())
    return f"<table>{rows}</table>"


def _html_row(name: str, content: str) -> str:
    head = f"<th style='text-align:right'>{html.escape(name)}</th>"
    return f"<tr>{head}<td style='text-align:left'>{content}</td></tr>"


def _table(state: ProgressState) -> Table:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold cyan", justify="right")
    table.add_column()
    for name, share, text in _bars(state):
        full = round(BAR * share)
        table.add_row(name, f"[green]{'━' * full}[/green][dim]{'━' * (BAR - full)}[/dim] {text}")
    for key, value in _facts(state).items():
        table.add_row(key, value)
    return table


def _bars(state: ProgressState) -> Iterator[tuple[str, float, str]]:
    """Yield (stage, share of its queries that are done, text) per stage. Without a total, the share is 0."""
    total = state["total"]
    for stage, rows in state["stages"].items():
        done = state["completed_before"] + rows
        yield stage, min(done / total, 1.0) if total else 0.0, f"{done:,}" + (f" of {total:,}" if total else "")


def _facts(state: ProgressState) -> dict[str, str]:
    """Return the facts below the bars: name -> text."""
    outcomes, seconds = state["outcomes"], state["seconds"]
    decided = outcomes.get("pass", 0) + outcomes.get("fail", 0)
    facts = {"verdicts": " ".join(f"{name} {count:,}" for name, count in sorted(outcomes.items())) or "none yet"}
    if decided:
        facts["pass rate"] = f"{outcomes.get('pass', 0) / decided:.1%} of {decided:,} decided"
    facts["requests"] = f"{state['requests']:,} ({state['requests'] / max(seconds, 1.0):.1f}/s)"
    if state["failures"]:
        causes = Counter(state["failures"]).most_common()
        facts["failed attempts"] = ", ".join(f"{visible(cause)} {count:,}" for cause, count in causes)
    facts["tokens"] = f"{state['tokens']:,}"
    facts["cost"] = f"${state['usd']:.4f}"
    if state["left_usd"] is not None:
        facts["cost"] += f" (${state['left_usd']:.4f} of the budget is left)"
    facts["time"] = _clock(seconds)
    if state["waiting"]:
        facts["waiting"] = visible("; ".join(state["waiting"]))
    if state["left_s"] is not None:
        facts["left"] = _clock(state["left_s"])
    return facts


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
