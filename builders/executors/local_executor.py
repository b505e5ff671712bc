"""The local executor: several shards in flight in this process, so that generation never waits for verification."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from bestofn.builders.run import pipeline
from bestofn.builders.run.progress import shown


class LocalExecutor:
    """Runs ``shards_in_flight`` shards side by side, one thread each; the work itself is in one event loop.

    Memory is bounded by the shards in flight. The first error that stops the run cancels the rest; every answer that
    came is in the journal, and the same command goes on from there.
    """

    name = "local"

    def __init__(self, shards_in_flight: int = 4) -> None:
        if shards_in_flight < 1:
            raise ValueError(f"shards_in_flight is {shards_in_flight}; expected at least 1")
        self.shards_in_flight = shards_in_flight

    def run(self, config: Mapping[str, Any], out: Path) -> dict[str, Any]:
        """Build everything that ``config`` describes into ``out``; returns the manifest."""
        with pipeline.assembled(config, out) as build:
            pipeline.writable(out)
            pipeline.note_state(build, "running")
            names = [stage.name for stage, _ in build.stages]
            try:
                with shown(build.progress, names, build.spending):
                    parts = self._run_shards(build)
                return pipeline.finish(build, parts)
            except BaseException:
                pipeline.note_state(build, "interrupted")
                raise

    def _run_shards(self, build: pipeline.Build) -> list[Path]:
        parts: dict[int, Path] = {}
        flying: dict[Future[Path], int] = {}
        pool = ThreadPoolExecutor(self.shards_in_flight, thread_name_prefix="shard")

        def land(finished: set[Future[Path]]) -> None:
            for future in finished:
                parts[flying.pop(future)] = future.result()

        try:
            for number, queries in pipeline.shards(build.source, int(build.config["shard_size"])):
                while len(flying) >= self.shards_in_flight:
                    land(wait(flying, return_when=FIRST_COMPLETED).done)
                flying[pool.submit(pipeline.run_shard, build, number, queries)] = number
            while flying:
                land(wait(flying, return_when=FIRST_COMPLETED).done)
        except BaseException as error:
            build.loop.cancel()
            wait(flying, timeout=5)
            raise _cause(error, list(flying)) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        return [parts[number] for number in sorted(parts)]


def _cause(error: BaseException, flying: list[Future[Path]]) -> BaseException:
    """The error that stopped the run, not the cancellations that it set off."""
    if not isinstance(error, asyncio.CancelledError):
        return error
    for future in flying:
        if future.done() and not future.cancelled():
            other = future.exception()
            if other is not None and not isinstance(other, asyncio.CancelledError):
                return other
    return error
