"""The driver's records of the shards on a cluster: a queue of shards, and counts of rows and verdicts."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Mapping, Sequence

from bestofn.builders.errors import MachineError
from bestofn.builders.executors.cluster_gateway import ShardCounts
from bestofn.builders.records import Query
from bestofn.builders.run.pipeline import Run, checked_shards, is_shard_complete

MAX_LOSSES = 3  # a shard that has lost this many workers is assumed to be the cause


class ShardQueue:
    """The shards that must still run. Shards whose worker was lost come before new shards of the source.

    ``complete`` are the numbers of the complete shards.
    """

    def __init__(self, run: Run) -> None:
        self.complete: set[int] = set()
        self.is_empty = False
        self._run = run
        self._source = checked_shards(run)
        self._lost: deque[tuple[int, Sequence[Query]]] = deque()
        self._losses: Counter[int] = Counter()

    def has_shards(self) -> bool:
        """Return whether a shard must run."""
        if (shard := self.next()) is not None:
            self._lost.appendleft(shard)
        return shard is not None

    def next(self) -> tuple[int, Sequence[Query]] | None:
        """Return (number, queries) of the next incomplete shard; None if no shard is waiting now."""
        if self._lost:
            return self._lost.popleft()
        for number, queries in self._source:
            if not is_shard_complete(self._run, number, queries):
                return number, queries
            self.complete.add(number)
            self._run.progress.count_finished_rows(len(queries))
        self.is_empty = True
        return None

    def give_back(self, number: int, queries: Sequence[Query], error: Exception) -> None:
        """Queue shard ``number`` again, because its worker was lost with ``error``.

        Raises ``MachineError`` if this shard has now lost ``MAX_LOSSES`` workers.
        """
        self._losses[number] += 1
        if self._losses[number] >= MAX_LOSSES:
            raise MachineError(
                f"shard {number} has lost its worker {MAX_LOSSES} times. The last error: {error}\nThe machine may be "
                "short of memory. Set a smaller shard_size or executor.shards_in_flight."
            )
        self._lost.append((number, queries))
        self.is_empty = False


class ClusterCounts:
    """The counts of rows and verdicts of the whole cluster. A shard that runs again is counted only once."""

    def __init__(self) -> None:
        self._completed: set[int] = set()
        self._totals: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        self._in_flight: dict[int, ShardCounts] = {}
        self._lock = threading.Lock()

    def update(self, reported: Mapping[int, ShardCounts]) -> None:
        """Store the counts of shards in flight. Reports that arrive after a shard is complete are ignored."""
        with self._lock:
            self._in_flight |= {number: counts for number, counts in reported.items() if number not in self._completed}

    def complete(self, number: int, counts: ShardCounts) -> None:
        """Store the final counts of shard ``number``."""
        with self._lock:
            self._completed.add(number)
            self._in_flight.pop(number, None)
            for total, part in zip(self._totals, counts, strict=True):
                total.update(part)

    def totals(self) -> tuple[Counter[str], Counter[str]]:
        """Return (rows per stage, candidates per outcome), summed over all shards."""
        with self._lock:
            rows, outcomes = (Counter(total) for total in self._totals)
            for by_stage, by_outcome in self._in_flight.values():
                rows.update(by_stage)
                outcomes.update(by_outcome)
            return rows, outcomes
