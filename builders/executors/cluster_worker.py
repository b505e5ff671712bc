"""The Ray actors that run shards and single stages on the machines of a cluster.

Each actor creates the objects of the configuration once. It uses the same sandbox, models and connections for all its
shards. A stage that needs special machines (a GPU, Docker) runs in separate actors, which the shard workers call once
per row.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from datasets import Features

from bestofn.builders.concurrency.event_loop import Loop
from bestofn.builders.errors import MachineError
from bestofn.builders.executors.cluster_gateway import GatewaySampler, ShardCounts, enter_all, remote_cause
from bestofn.builders.records import JsonObject, Query, Row
from bestofn.builders.run.pipeline import Run, create_run, run_shard
from bestofn.builders.run.progress import Progress
from bestofn.builders.sampling.cost import Ledger
from bestofn.builders.sampling.provider import Provider
from bestofn.builders.stages.stage import Stage
from bestofn.builders.tables.checksums import marker_of

REPORT_EVERY_S = 1.0
RemoteActors = Sequence[Any]
"""Handles of Ray actors. The type is ``Any``, because Ray generates the methods of a handle."""


@dataclass(frozen=True, slots=True)
class CompletedShard:
    """The counts of a completed shard, its Parquet file (``part``) and its completion marker (``marker``).

    ``part`` and ``marker`` are None if the worker wrote both files into the run folder.
    """

    counts: ShardCounts
    part: bytes | None = None
    marker: str | None = None


class ShardWorker:
    """A Ray actor that runs several shards at once, with one thread per shard and one event loop for all shards.

    If the file ``probe_name`` exists in ``out``, the worker can access the run folder and writes there. Otherwise (or
    if ``probe_name`` is empty) the worker writes to a temporary folder and returns the part.
    """

    def __init__(
        self,
        config: JsonObject,
        out: str,
        probe_name: str,
        environment: Mapping[str, str],
        gateway: Any,
        stage_workers: Mapping[str, RemoteActors],
    ) -> None:
        os.environ.update(environment)
        self._stack = ExitStack()
        self._sees_run_folder = bool(probe_name) and (Path(out) / probe_name).exists()
        folder = Path(out) if self._sees_run_folder else Path(tempfile.mkdtemp(prefix="bestofn-"))
        if not self._sees_run_folder:
            self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
        loop = self._stack.enter_context(Loop())
        self._lost: MachineError | None = None  # why ``loop`` was cancelled
        self._run = create_worker_run(config, folder, loop, gateway, self._stop, stage_workers)
        self._stack.callback(self._run.close)
        self._gateway = gateway
        self._progress: dict[int, Progress] = {}
        self._closing = threading.Event()
        threading.Thread(target=self._report_counts, daemon=True).start()

    def open(self) -> str:
        """Open all objects of the run. Returns the name of the machine."""
        self._run.open()
        return os.uname().nodename

    def run(self, number: int, queries: Sequence[Query]) -> CompletedShard:
        """Run shard ``number``, which consists of ``queries``, and return its result."""
        progress = self._progress[number] = Progress()
        try:
            part = run_shard(replace(self._run, progress=progress), number, queries)
        except (asyncio.CancelledError, concurrent.futures.CancelledError):
            if self._lost is None:
                raise
            raise self._lost from None
        finally:
            del self._progress[number]
        if self._sees_run_folder:
            return CompletedShard(counts_of(progress))
        marker = marker_of(part)
        shard = CompletedShard(counts_of(progress), part.read_bytes(), marker.read_text("utf-8"))
        part.unlink()
        marker.unlink()
        for file in (self._run.out / "cache").glob(f"{number:05d}-*"):
            file.unlink()
        return shard

    def close(self) -> None:
        """Cancel the shards in flight, close all objects, and delete the temporary folder."""
        self._closing.set()
        self._run.loop.cancel()
        self._stack.close()

    def _stop(self, lost: MachineError) -> None:
        """Cancel the shards in flight. They then raise ``lost``, the error of the lost gateway."""
        self._lost = self._lost or lost
        self._run.loop.cancel()

    def _report_counts(self) -> None:
        while not self._closing.wait(REPORT_EVERY_S):
            if counts := {number: counts_of(progress) for number, progress in list(self._progress.items())}:
                self._gateway.report_counts.remote(counts)


class StageWorker:
    """A Ray actor that runs one stage for the shard workers."""

    def __init__(self, config: JsonObject, name: str, environment: Mapping[str, str], gateway: Any) -> None:
        os.environ.update(environment)
        one_stage = {**config, "stages": {name: config["stages"][name]}}
        self._run = create_worker_run(one_stage, Path(tempfile.gettempdir()), Loop(), gateway, lambda lost: None, {})
        self._stage = self._run.stages[0].stage
        self._open = AsyncExitStack()
        self._opening: asyncio.Future[None] | None = None

    async def adds(self) -> Features:
        """Return the columns that the stage adds, with their types."""
        return self._stage.adds

    async def apply(self, row: Row) -> Row:
        """Return the columns that the stage adds to ``row``.

        The first call opens the objects of the stage. After a restart of the actor, the next call opens them again.
        """
        if self._opening is None:
            self._opening = asyncio.ensure_future(enter_all(self._open, self._run.objects.opened_in_order))
        await asyncio.shield(self._opening)
        return await self._stage.compute(row)

    async def close(self) -> None:
        """Close all objects of the stage."""
        await self._open.aclose()


class RemoteStage(Stage):
    """A ``Stage`` that sends its rows to several stage workers in turn.

    The result is the same as if the stage ran in the shard worker.
    """

    def __init__(self, name: str, adds: Features, workers: RemoteActors) -> None:
        self.name = name
        self._adds = adds
        self._workers = itertools.cycle(workers)

    @property
    def adds(self) -> Features:
        """The columns that the stage adds, with their types."""
        return self._adds

    async def compute(self, row: Row) -> Row:
        """Return the columns that the stage adds to ``row``. Raises ``MachineError`` if a stage worker is lost."""
        from ray.exceptions import RayError, RayTaskError

        try:
            return await next(self._workers).apply.remote(row)
        except RayTaskError as error:
            raise remote_cause(error) from None
        except RayError as error:
            raise MachineError(
                f"the Ray workers of stage {self.name} were lost, and Ray did not restart them: {error}\n"
                "Run the same command again to continue."
            ) from error


def create_worker_run(
    config: JsonObject,
    folder: Path,
    loop: Loop,
    gateway: Any,
    on_gateway_lost: Callable[[MachineError], None],
    stage_workers: Mapping[str, RemoteActors],
) -> Run:
    """Return a new run for a worker. Its samplers send their requests through ``gateway``.

    ``stage_workers`` maps the names of stages to actors. These stages run in the actors, not in the shard worker.
    ``on_gateway_lost`` is called if the gateway is lost.
    """
    import ray

    def make_sampler(provider: Provider, ledger: Ledger) -> GatewaySampler:
        return GatewaySampler(provider, ledger, gateway, on_gateway_lost)

    remote_stages = {
        name: RemoteStage(name, ray.get(workers[0].adds.remote()), workers) for name, workers in stage_workers.items()
    }
    run = create_run(config, folder, loop, make_sampler=make_sampler, remote_stages=remote_stages)
    providers = {id(provider) for provider, _ in run.objects.samplers.values()}  # only the gateway opens providers
    run.objects.opened_in_order[:] = [thing for thing in run.objects.opened_in_order if id(thing) not in providers]
    return run


def counts_of(progress: Progress) -> ShardCounts:
    """Return the counts in ``progress``: rows per stage, and candidates per outcome."""
    return dict(progress.rows), dict(progress.outcomes)
