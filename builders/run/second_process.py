"""The second process of a large build: it verifies, scores and pairs, and writes the parts of the shards.

The first process then only samples, so other work does not delay its event loop, and two processors are used. The
second process reads the candidates from the cache file of the first stage, so that a killed build loses nothing.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import logging
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar, cast

from bestofn.builders.concurrency.event_loop import Loop
from bestofn.builders.config.objects import ObjectBuilder
from bestofn.builders.protocols import Stage, Verifier, verified_by
from bestofn.builders.records import JsonObject, Query, Row
from bestofn.builders.run.disk import stopped_by_limit
from bestofn.builders.run.landing import Landed, LandingViews
from bestofn.builders.run.part_writer import Failures, PartWriter
from bestofn.builders.schema import features
from bestofn.builders.stages.generate import Generate
from bestofn.builders.stages.verify import Verify
from bestofn.builders.tables.columns import TableSettings
from bestofn.sandbox.forked import can_fork
from bestofn.sandbox.workers import ProcessPool, WorkerLost

Result = TypeVar("Result")
LEAST_QUERIES = 600  # to start a process takes longer than to verify the answers to fewer queries
NO_LIMIT_S, NO_LIMIT_MB = 1e9, 1 << 24  # of one shard
MODULES = (
    *("bestofn.builders.stages.", "bestofn.builders.pairing.", "bestofn.builders.config.objects.nothing"),
    *("bestofn.verifiers.", "bestofn.sandbox."),
    *("bestofn.reward.verification_reward.", "bestofn.reward.length_reward.", "bestofn.reward.format_reward."),
    *("bestofn.reward.repetition_reward.", "bestofn.reward.heuristic_reward."),
)
"""The classes that a second process may create: they send no requests and load no model."""
COPIED = ("pyarrow.parquet", "anyio.from_thread", "anyio._backends._asyncio")
"""Modules that both processes import when they first need them."""
VERIFIERS = frozenset({"math", "choice", "short_answer"})
"""The verifiers that use no sandbox."""


class Shard(NamedTuple):
    """The arguments of ``PartWriter.write``."""

    number: int
    rows: Sequence[Row]
    fingerprints: Sequence[str]


@dataclass(frozen=True, slots=True)
class WrittenPart:
    """The report of the second process about one part. ``rows``: stage -> count; ``outcomes``: outcome -> count."""

    failed: Failures
    rows: Mapping[str, int]
    outcomes: Mapping[str, int]
    logged: Sequence[logging.LogRecord]


def second_process(config: JsonObject, out: Path, stages: Sequence[Stage]) -> SecondProcess | None:
    """Return the second process of a run; None if its stages do not allow one.

    The first stage must be ``Generate``, and all later stages must consist of classes in ``MODULES``.
    """
    nodes: Mapping[str, JsonObject] = config["stages"]
    if not stages or not isinstance(stages[0], Generate):
        return None
    later = {name: nodes[name] for name in list(nodes)[1:]}
    if not all(target.startswith(MODULES) for target in _targets(later)):
        return None
    verifier = next((stage.verifier for stage in stages if isinstance(stage, Verify)), None)
    return SecondProcess(out, later, verifier)


def _targets(node: object) -> Iterator[str]:
    """Yield each ``_target_`` in a configuration node."""
    if isinstance(node, Mapping):
        for key, value in cast("Mapping[str, object]", node).items():
            if key == "_target_":
                yield str(value)
            else:
                yield from _targets(value)
    elif isinstance(node, list | tuple):
        for value in cast("Sequence[object]", node):
            yield from _targets(value)


class SecondProcess:
    """A process that runs the stages ``later`` of the run ``out``.

    The process is started by ``forked``, or by ``expect`` after ``LEAST_QUERIES`` queries.
    """

    def __init__(self, out: Path, later: Mapping[str, JsonObject], verifier: Verifier | None) -> None:
        self._out, self._later, self._verifier = str(out.absolute()), json.dumps(later, default=str), verifier
        self._pool = ProcessPool(1, NO_LIMIT_MB, preload=(__name__,), calls_per_worker=1 << 40)
        self._lock = threading.Lock()
        self._expected = 0
        self._complete: set[int] = set()

    @contextlib.contextmanager
    def forked(self, most_queries: int | None) -> Iterator[None]:
        """Start the second process now as a copy of this process, if possible. Kill it after the block.

        A copy needs 0.3 s less CPU time than a new process, which imports everything again. ``most_queries`` is the
        number of queries of the run; None if it is not known. A run with fewer than ``LEAST_QUERIES`` queries needs
        no second process.
        """
        if (most_queries is None or most_queries >= LEAST_QUERIES) and can_fork():
            for module in COPIED:
                importlib.import_module(module)
            with contextlib.suppress(OSError):  # a new process starts later instead
                self._pool.fork_worker()
        try:
            yield
        finally:
            self._pool.kill()

    async def __aenter__(self) -> SecondProcess:
        await self._pool.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._pool.__aexit__(*exc)

    def expect(self, queries: int, loop: Loop, settings: TableSettings) -> None:
        """Count queries whose sampling starts now. At ``LEAST_QUERIES``, the process starts in ``loop``.

        ``settings`` are those of the published tables.
        """
        with self._lock:
            before, self._expected = self._expected, self._expected + queries
        if before < LEAST_QUERIES <= self._expected:
            loop.submit(self._pool.call(_open, self._out, self._later, settings, timeout_s=NO_LIMIT_S))

    def takes(self, queries: Collection[Query]) -> bool:
        """Return whether the process has started, and can verify the answers to ``queries``."""
        verifier = self._verifier
        if self._expected < LEAST_QUERIES:
            return False
        return verifier is None or all(verified_by(verifier, query) in VERIFIERS for query in queries)

    def complete(self, number: int) -> None:
        """Record that the part of shard ``number`` is complete."""
        with self._lock:
            self._complete.add(number)

    async def write(self, shard: Shard, settings: TableSettings) -> WrittenPart:
        """Run the later stages over ``shard`` and write its part. See ``PartWriter.write``.

        The rows are also added to the published tables, which have the settings ``settings``.
        """
        call = (self._out, self._later, shard, settings, frozenset(self._complete))
        written = await self._call(_write_part, *call)
        for record in written.logged:
            logging.getLogger(record.name).handle(record)
        return written

    async def finish_views(
        self, parts: Sequence[Path], described: JsonObject, settings: TableSettings
    ) -> Landed | None:
        """Publish the tables of ``parts``.

        ``described`` is the manifest. Returns None if the caller must write the tables itself.
        """
        if self._expected < LEAST_QUERIES:
            return None
        described = json.loads(json.dumps(described, default=str))
        return await self._call(_finish_views, self._out, settings, parts, described)

    async def _call(self, function: Callable[..., Result], *args: object) -> Result:
        """Return ``function(*args)``, computed in the second process.

        Raises ``MachineError`` if the second process ends twice.
        """
        try:
            return await self._pool.call(function, *args, timeout_s=NO_LIMIT_S)
        except WorkerLost as error:
            raise stopped_by_limit(
                f"the second process, which verifies answers and writes tables, ended two times: {error}. Signal 9 "
                "usually means that the memory of this machine or container was full",
                "Free memory, or set a smaller shard_size",
            ) from error


class _Sampled:
    """Replaces the stage ``generate`` in the second process. Its result is read from the cache; a call is an error."""

    name = Generate.name

    @property
    def adds(self) -> Mapping[str, object]:
        return features()["candidates"]

    async def __call__(self, row: Row) -> Row:
        raise RuntimeError("the cache file of the sampled candidates is missing or damaged; run the same command again")


class _Records(logging.Handler):
    """Collects log records, in a form that another process can read."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        record.msg, record.args, record.exc_info = record.getMessage(), None, None
        self.records.append(record)


def _write_part(out: str, later: str, shard: Shard, settings: TableSettings, complete: Collection[int]) -> WrittenPart:
    """Write one part in the second process, and add its rows to the published tables."""
    loop, stages = _stages(later)
    done: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()

    def row_done(stage: str, added: Row) -> None:
        done[stage] += 1
        outcomes.update(verdict["outcome"] for verdict in added.get("verdicts") or ())

    def landed(number: int, rows: Sequence[Row], size: int) -> None:
        _views(out, settings).add(number, rows, size, complete)

    logged = _Records()
    logging.getLogger("bestofn").addHandler(logged)
    try:
        failed = PartWriter(Path(out), stages, loop, row_done, landed).write(*shard)
    finally:
        logging.getLogger("bestofn").removeHandler(logged)
    return WrittenPart(dict(failed), done, outcomes, logged.records)


def _finish_views(out: str, settings: TableSettings, parts: Sequence[Path], described: JsonObject) -> Landed | None:
    return _views(out, settings).finish(parts, described)


@functools.cache
def _views(out: str, settings: TableSettings) -> LandingViews:
    """Return the tables that this process writes. They stay open until the process ends."""
    return LandingViews(Path(out), settings)


def _open(out: str, later: str, settings: TableSettings) -> None:
    """Create the stages and the tables before the first shard is sampled."""
    _stages(later)
    _views(out, settings)


@functools.cache
def _stages(later: str) -> tuple[Loop, Sequence[Stage]]:
    """Create and open the stages of this process. They stay open until the process ends."""
    objects = ObjectBuilder()
    nodes: Mapping[str, JsonObject] = json.loads(later)
    stages = [objects.build(node, f"stages.{name}") for name, node in nodes.items()]
    loop = Loop()
    loop.__enter__()
    opened = [one for one in objects.opened_in_order if type(one).__module__.startswith("bestofn.verifiers.")]
    pools = [one for one in objects.opened_in_order if isinstance(one, ProcessPool)]
    loop.open(*pools, *opened).__enter__()
    return loop, [_Sampled(), *stages]
