"""The live report of a run folder: its figures and queries, updated as its shards are completed.

Everything is read from the folder. So the report can show a build that runs in another process, and a build that was
resumed. ``report.live_server`` serves the report.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypedDict

from bestofn.builders.analysis.figures import Figures
from bestofn.builders.analysis.run_figures import PairTally, Tally, figures_of_run
from bestofn.builders.errors import BestofnError
from bestofn.builders.records import JsonObject
from bestofn.builders.report.html_page import details_html, facts_html, summary_html
from bestofn.builders.report.query_html import PART_QUERIES, IndexEntry, PageEntry, index_entry, page_entry
from bestofn.builders.run import manifest
from bestofn.builders.run.run_lock import holder_of, is_being_written
from bestofn.builders.tables.checksums import marker_of
from bestofn.builders.tables.shards import nested


class LiveState(TypedDict):
    """The state that the page requests every few seconds.

    ``generation`` changes if loaded queries of the page may be outdated; the page then loads all queries again.
    ``parts`` is the number of parts in which the page loads the queries. ``ended`` is true if the server is about to
    end. ``facts``, ``summary`` and ``details`` are safe HTML. They are empty if the
    page already shows the state with this ``version``.
    """

    generation: int
    version: int
    parts: int
    ended: bool
    state: str
    progress: JsonObject
    facts: str
    summary: str
    details: str


class _Part(NamedTuple):
    """One part of the query browser: its shard, its first row in this shard, and the index of its queries."""

    shard: Path
    first: int
    index: list[IndexEntry]


class LiveReport:
    """The report of the run in ``folder``.

    ``progress`` returns the progress of the build. If it is None, the progress is read from the lock of the folder.
    """

    def __init__(self, folder: Path, progress: Callable[[], JsonObject] | None = None) -> None:
        self.folder = folder
        self.name = folder.resolve().name
        self.ended = False
        self._progress = progress
        self._lock = threading.Lock()
        self._generation = 0
        self._version = 0
        self._described: JsonObject = {}
        self._reset()

    def state(self, version: int = -1) -> LiveState:
        """Read the changes in the folder and return the state. ``version`` is the version that the page shows."""
        with self._lock:
            self._update()
            texts = self._texts() if version != self._version else ("", "", "")
            return {
                "generation": self._generation,
                "version": self._version,
                "parts": len(self._parts),
                "ended": self.ended,
                "state": str(self._described.get("state") or "running"),
                "progress": self._progress_now(),
                "facts": texts[0],
                "summary": texts[1],
                "details": texts[2],
            }

    def index(self, first: int) -> list[list[IndexEntry]]:
        """Return the index of each part from part ``first`` on."""
        with self._lock:
            return [part.index for part in self._parts[first:]]

    def part(self, number: int) -> list[PageEntry]:
        """Return the queries of part ``number``. Raises ``IndexError`` if there is no such part."""
        with self._lock:
            part = self._parts[number]
        rows = itertools.islice(nested([part.shard]), part.first, part.first + PART_QUERIES)
        return [page_entry(row) for row in rows]

    def _update(self) -> None:
        described = manifest.read_or_empty(self.folder)
        shards = {shard: _marker(shard) for shard in sorted((self.folder / "shards").glob("*.parquet"))}
        completed = {shard: text for shard, text in shards.items() if text}
        if any(completed.get(shard) != text for shard, text in self._read.items()):
            self._reset()
        new = [shard for shard in completed if shard not in self._read]
        try:
            for shard in new:
                self._add(shard)
                self._read[shard] = completed[shard]
        except (BestofnError, OSError):  # the shard is damaged or was replaced; a part of its rows may be counted
            self._reset()
            raise
        if new or described != self._described:
            self._described = described
            self._version += 1
            is_complete = described.get("state") == "complete"
            self._figures = self._complete_figures(described) if is_complete else self._tally.figures(self._pairs)

    def _add(self, shard: Path) -> None:
        rows = nested([shard])
        for first in itertools.count(0, PART_QUERIES):
            some = list(itertools.islice(rows, PART_QUERIES))
            if not some:
                return
            self._tally.add_rows(some)
            self._pairs.add_rows(some)
            self._parts.append(_Part(shard, first, [index_entry(row) for row in some]))

    def _complete_figures(self, described: JsonObject) -> Figures:
        """Return the figures of the published tables.

        If the tables cannot be read, return the figures of the shards.
        """
        try:
            return figures_of_run(self.folder, described)
        except BestofnError:  # another command replaces the tables now; the shards have the same answers
            return self._tally.figures(self._pairs)

    def _reset(self) -> None:
        self._generation += 1
        self._tally, self._pairs = Tally(self.name), PairTally()
        self._figures = self._tally.figures(self._pairs)
        self._parts: list[_Part] = []
        self._read: dict[Path, str] = {}  # shard -> content of its marker

    def _texts(self) -> tuple[str, str, str]:
        figures = self._figures
        details = str(details_html(figures)) if figures["queries"] else ""
        return str(facts_html(self._described, figures)), str(summary_html(figures, self._described)), details

    def _progress_now(self) -> JsonObject:
        if self._progress is not None:
            return self._progress()
        holder = holder_of(self.folder)
        return holder.progress if holder is not None and is_being_written(self.folder) else {}


def _marker(shard: Path) -> str:
    """Return the content of the marker of a completed shard; "" if the shard is not complete."""
    try:
        return marker_of(shard).read_text("utf-8")
    except OSError:
        return ""
