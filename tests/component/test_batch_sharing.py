"""Processes that share a journal in batch mode: one after another samples, and no sample is paid for twice.

Two ``Journal`` objects for one file behave like two processes: each has its own lock.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bestofn.builders.records import Completion
from bestofn.builders.sampling import journal as journal_module
from bestofn.builders.sampling.cost import Ledger
from bestofn.builders.sampling.journal import Journal
from bestofn.builders.sampling.sampler import JournaledSampler, sampler
from tests.batch_doubles import OpenAIDouble
from tests.batch_runs import PRICES, ask, calls, chat, states
from tests.wire_server import WireServer


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "LOOK_S", 0.02)


@asynccontextmanager
async def process(folder: Path, server: WireServer, **settings: Any) -> AsyncIterator[JournaledSampler]:
    """Yield an open sampler with a new ``Journal`` object for ``folder``. It acts as a separate process."""
    journal, provider = Journal(folder / "j.sqlite"), chat(server, **settings)
    draws = sampler(provider, journal, Ledger(prices=PRICES))
    async with journal, provider, draws:
        yield draws


def all_of(draws: JournaledSampler, count: int = 6) -> list[asyncio.Task[Any]]:
    return [asyncio.create_task(draws.draw(ask(number), range(2))) for number in range(count)]


async def until(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110  # the double lives in another thread
        await asyncio.sleep(0.01)


def assert_paid_once(double: OpenAIDouble, drawn: list[Any], folder: Path, count: int = 6) -> None:
    assert all(isinstance(one, Completion) for pair in drawn for one in pair)
    assert double.paid == {f"Q{number} 0": 1 for number in range(count)}
    assert double.online == 0
    assert calls(folder) == [("batch", count, float(count))]
    assert set(states(folder)) == {"closed"}


@pytest.mark.parametrize("processes", [2, 4])
def test_processes_that_start_together_pay_once(tmp_path: Path, processes: int) -> None:
    double = OpenAIDouble()

    async def run(server: WireServer) -> list[Any]:
        async def one() -> list[Any]:
            async with process(tmp_path, server) as draws:
                return await asyncio.gather(*all_of(draws))

        return [pair for drawn in await asyncio.gather(*(one() for _ in range(processes))) for pair in drawn]

    with WireServer(double) as server:
        assert_paid_once(double, asyncio.run(run(server)), tmp_path)


async def all_by_another(folder: Path, server: WireServer, **settings: Any) -> list[Any]:
    async with process(folder, server, **settings) as draws:
        return await asyncio.gather(*all_of(draws))


@pytest.mark.parametrize("mode", ["batch", "online"])
def test_a_job_in_progress_belongs_to_its_process(tmp_path: Path, mode: str) -> None:
    double = OpenAIDouble(polls=10**6)

    async def run(server: WireServer) -> list[Any]:
        async with process(tmp_path, server) as first:
            waiting = all_of(first)
            await until(lambda: double.looked)
            later = asyncio.create_task(all_by_another(tmp_path, server, mode=mode))
            await asyncio.sleep(0.1)
            double.polls = 0
            drawn = await asyncio.gather(*waiting)
        return [*drawn, *await later]

    with WireServer(double) as server:
        assert_paid_once(double, asyncio.run(run(server)), tmp_path)
    assert len(double.inputs) == 1


@pytest.mark.parametrize("mode", ["batch", "online"])
@pytest.mark.parametrize("others", [1, 3])
def test_the_jobs_of_a_process_that_ends_are_resumed_by_another(tmp_path: Path, mode: str, others: int) -> None:
    double = OpenAIDouble(polls=10**6)

    async def run(server: WireServer) -> list[Any]:
        async with process(tmp_path, server) as first:
            waiting = all_of(first)
            await until(lambda: double.looked)
            later = [asyncio.create_task(all_by_another(tmp_path, server, mode=mode)) for _ in range(others)]
            await asyncio.sleep(0.1)
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        double.polls = 0
        return [pair for drawn in await asyncio.gather(*later) for pair in drawn]

    with WireServer(double) as server:
        assert_paid_once(double, asyncio.run(run(server)), tmp_path)
    assert len(double.inputs) == 1
