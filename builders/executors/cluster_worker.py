"""What runs on the machines of a cluster: workers that take whole shards, and workers of a single stage.

Each assembles the configuration for itself, once, and keeps its sandbox, its models and its connections for all shards
that it is given. A stage that needs other machines than the rest (a GPU, a Docker engine) has workers of its own, and
is called row by row from the shard workers.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bestofn.builders.concurrency.event_loop import Loop
from bestofn.builders.errors import MachineError
from bestofn.builders.executors.cluster_gateway import Counts, GatewaySampler, cause_of
from bestofn.builders.records import Query
from bestofn.builders.run import pipeline
from bestofn.builders.run.progress import Progress
from bestofn.builders.sampling.cost import Ledger

TELL_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class Landed:
    """A finished shard. ``part`` and ``marker`` None: they are in the run's folder already."""

    counts: Counts
    part: bytes | None = None
    marker: str | None = None


class ShardWorker:
    """Ray actor that runs shards, several at once in as many threads over one event loop.

    Where it sees the run's folder (this machine, or a file system that all share), which it knows by the file ``sign``
    in it, it writes there; elsewhere (and without a ``sign``) it works in a temporary folder, and the part goes back
    with the answer.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        out: str,
        sign: str,
        environment: Mapping[str, str],
        gateway: Any,
        elsewhere: Mapping[str, Sequence[Any]],
    ) -> None:
        os.environ.update(environment)
        self._stack = ExitStack()
        self._shares_folder = bool(sign) and (Path(out) / sign).exists()
        folder = Path(out) if self._shares_folder else Path(tempfile.mkdtemp(prefix="bestofn-"))
        if not self._shares_folder:
            self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
        loop = self._stack.enter_context(Loop())
        self._build = assembled_here(config, folder, loop, gateway, loop.cancel, elsewhere)
        self._stack.callback(self._build.close)
        self._gateway = gateway
        self._progress: dict[int, Progress] = {}
        self._closing = threading.Event()
        threading.Thread(target=self._tell, daemon=True).start()

    def open(self) -> str:
        """Open everything; returns the name of the machine."""
        self._build.open()
        return os.uname().nodename

    def run(self, number: int, queries: Sequence[Query]) -> Landed:
        """Run shard ``number``."""
        progress = self._progress[number] = Progress()
        try:
            part = pipeline.run_shard(replace(self._build, progress=progress), number, queries)
        finally:
            del self._progress[number]
        if self._shares_folder:
            return Landed(counts(progress))
        marker = part.with_suffix(".json")
        landed = Landed(counts(progress), part.read_bytes(), marker.read_text("utf-8"))
        part.unlink()
        marker.unlink()
        for file in (self._build.out / "cache").glob(f"{number:05d}-*"):
            file.unlink()
        return landed

    def close(self) -> None:
        """Cancel what is under way, close everything, and leave nothing behind."""
        self._closing.set()
        self._build.loop.cancel()
        self._stack.close()

    def _tell(self) -> None:
        while not self._closing.wait(TELL_EVERY_S):
            if under_way := {number: counts(progress) for number, progress in list(self._progress.items())}:
                self._gateway.tell.remote(under_way)


class StageWorker:
    """Ray actor that runs one stage for the shard workers."""

    def __init__(self, config: Mapping[str, Any], name: str, environment: Mapping[str, str], gateway: Any) -> None:
        os.environ.update(environment)
        alone = {**config, "stages": {name: config["stages"][name]}}
        self._build = assembled_here(alone, Path(tempfile.gettempdir()), Loop(), gateway, lambda: None, {})
        self._stage = self._build.stages[0][0]
        self._open = AsyncExitStack()
        self._opening: asyncio.Future[None] | None = None

    async def adds(self) -> Mapping[str, Any]:
        """The columns that the stage adds."""
        return self._stage.adds

    async def apply(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """The columns that the stage adds to ``row``. The first row opens everything, also in one begun anew by Ray."""
        self._opening = self._opening or asyncio.ensure_future(self._enter())
        await asyncio.shield(self._opening)
        return await self._stage(row)

    async def close(self) -> None:
        await self._open.aclose()

    async def _enter(self) -> None:
        for thing in self._build.assembly.opened_in_order:
            if hasattr(thing, "__aenter__"):
                await self._open.enter_async_context(thing)


class RemoteStage:
    """A ``Stage`` whose rows are worked on by stage workers, in turn. What it makes is what the stage itself makes."""

    def __init__(self, name: str, adds: Mapping[str, object], workers: Sequence[Any]) -> None:
        self.name = name
        self.adds = adds
        self._workers = itertools.cycle(workers)

    async def __call__(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        from ray.exceptions import RayError, RayTaskError

        try:
            return await next(self._workers).apply.remote(row)
        except RayTaskError as error:
            raise cause_of(error) from None
        except RayError as error:
            raise MachineError(f"the workers of stage {self.name} are gone, and did not come back: {error}") from error


def assembled_here(
    config: Mapping[str, Any],
    folder: Path,
    loop: Loop,
    gateway: Any,
    lost: Any,
    elsewhere: Mapping[str, Sequence[Any]],
) -> pipeline.Build:
    """The build of ``config`` as one machine of many holds it: providers are asked, and some stages run, elsewhere."""

    def wrap(provider: Any, ledger: Ledger) -> GatewaySampler:
        return GatewaySampler(provider, ledger, gateway, lost)

    stages = {name: remote_stage(name, workers) for name, workers in elsewhere.items()}
    build = pipeline.assemble(config, folder, loop, wrap=wrap, elsewhere=stages)
    asked_elsewhere = {id(provider) for provider, _ in build.assembly.samplers.values()}
    build.assembly.opened_in_order[:] = [
        thing for thing in build.assembly.opened_in_order if id(thing) not in asked_elsewhere
    ]
    return build


def remote_stage(name: str, workers: Sequence[Any]) -> RemoteStage:
    """The stage ``name``, run by ``workers``."""
    import ray

    return RemoteStage(name, ray.get(workers[0].adds.remote()), workers)


def counts(progress: Progress) -> Counts:
    return dict(progress.rows), dict(progress.outcomes)
