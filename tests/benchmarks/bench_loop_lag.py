"""Measures how long the event loop is blocked during a whole build with math verification.

    python -m tests.benchmarks.bench_loop_lag [--prompts 2000] [--concurrency 256]

The build runs in this process against a mock server with 200 ms of latency. Time in which the thread waits for a
processor does not count. Prints percentiles of two times: how late a 5 ms timer is, and the processor time of each
iteration of the event loop that takes more than 1 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

from bestofn.builders.config.composition import compose
from bestofn.builders.executors.local_executor import LocalExecutor
from bestofn.builders.run.pipeline import Run
from bestofn.scripts.benchmark_speed import build_words, server
from tests.benchmarks.loop_lag import IterationTimes, LoopLag


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=256)
    given = parser.parse_args()
    lag, iterations = LoopLag(), list[IterationTimes]()
    opened = Run.open

    async def measured() -> None:
        async with lag:
            iterations.append(IterationTimes(asyncio.get_running_loop()).__enter__())
            await asyncio.Event().wait()

    def open_and_measure(run: Run) -> None:
        if not run.is_open:
            opened(run)
            run.loop.submit(measured())

    with tempfile.TemporaryDirectory() as folder, server(tail=False) as port:
        words = build_words(Path(folder), port, given.prompts, 4, given.concurrency)
        with mock.patch.object(Run, "open", open_and_measure):
            LocalExecutor().run(compose(words[1:]), Path(folder) / "run")
    _print("lag of the timer", lag.lags_s)
    _print("CPU of an iteration", [seconds for seconds in iterations[0].cpu_s if seconds > 0.001])


def _print(what: str, seconds: Sequence[float]) -> None:
    ordered = sorted(seconds)
    shown = {f"p{share}": ordered[len(ordered) * share // 100] for share in (50, 90, 99)} | {"worst": ordered[-1]}
    print(f"{what}: " + ", ".join(f"{name} {1000 * value:.1f} ms" for name, value in shown.items()))


if __name__ == "__main__":
    main()
