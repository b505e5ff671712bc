"""Processes that share a journal in batch mode: each batch job has one owner, and no sample is paid for twice.

Two ``Journal`` objects for one file behave like two processes: each is an owner with its own connection and claims.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bestofn.builders.errors import ServiceError
from bestofn.builders.records import Completion
from bestofn.builders.sampling import claims
from bestofn.builders.sampling.cost import Ledger
from bestofn.builders.sampling.journal import Journal
from bestofn.builders.sampling.sampler import JournaledSampler, sampler
from tests.batch_doubles import OpenAIDouble
from tests.batch_runs import PRICES, ask, calls, chat, draw, states
from tests.wire_server import Answer, Sent, WireServer


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "LOOK_S", 0.02)


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


@pytest.mark.parametrize("mode", ["batch", "online"])
def test_a_job_in_progress_belongs_to_its_process(tmp_path: Path, mode: str) -> None:
    double = OpenAIDouble(polls=10**6)

    async def run(server: WireServer) -> list[Any]:
        async with process(tmp_path, server) as first:
            waiting = all_of(first)
            await until(lambda: double.looked)
            async with process(tmp_path, server, mode=mode) as second:
                later = all_of(second)
                await asyncio.sleep(0.1)
                double.polls = 0
                return await asyncio.gather(*waiting, *later)

    with WireServer(double) as server:
        assert_paid_once(double, asyncio.run(run(server)), tmp_path)
    assert len(double.inputs) == 1


def test_a_planned_job_of_another_process_is_not_searched_for(tmp_path: Path) -> None:
    double = OpenAIDouble()

    def answer(sent: Sent) -> Answer:
        return replace(double(sent), after_s=0.3) if double.step_of(sent) == "create" else double(sent)

    async def run(server: WireServer) -> list[Any]:
        async with process(tmp_path, server) as first:
            waiting = all_of(first)
            await until(lambda: double.inputs)
            async with process(tmp_path, server) as second:
                return await asyncio.gather(*waiting, *all_of(second))

    with WireServer(answer) as server:
        assert_paid_once(double, asyncio.run(run(server)), tmp_path)
    assert double.lists == 0


@pytest.mark.parametrize("mode", ["batch", "online"])
@pytest.mark.parametrize("others", [1, 3])
def test_the_jobs_of_a_process_that_ends_are_resumed_by_another(tmp_path: Path, mode: str, others: int) -> None:
    double = OpenAIDouble(polls=10**6)

    async def other(server: WireServer, arrived: asyncio.Event) -> list[Any]:
        async with process(tmp_path, server, mode=mode) as draws:
            waiting = all_of(draws)
            arrived.set()
            return await asyncio.gather(*waiting)

    async def run(server: WireServer) -> list[Any]:
        arrived = [asyncio.Event() for _ in range(others)]
        async with process(tmp_path, server) as first:
            waiting = all_of(first)
            await until(lambda: double.looked)
            later = [asyncio.create_task(other(server, event)) for event in arrived]
            await asyncio.gather(*(event.wait() for event in arrived))
            await asyncio.sleep(0.1)
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        double.polls = 0
        return [pair for drawn in await asyncio.gather(*later) for pair in drawn]

    with WireServer(double) as server:
        assert_paid_once(double, asyncio.run(run(server)), tmp_path)
    assert len(double.inputs) == 1


def test_a_search_that_fails_during_a_run_costs_only_the_samples_of_the_lost_job(tmp_path: Path) -> None:
    """If the service cannot list its jobs for a while, only the samples of a lost job fail.

    The job is lost because the process that submitted it ends before it receives the job's id.
    """
    double = OpenAIDouble(polls=10**6)
    double.fail("create", Answer(after_s=1.0), done=True)
    double.fail("list", *[Answer(status=503)] * 1000)

    async def run(server: WireServer) -> list[Any]:
        async with process(tmp_path, server) as first:
            waiting = all_of(first)
            await until(lambda: double.inputs)
            second = process(tmp_path, server)
            draws = await second.__aenter__()
            later = [asyncio.create_task(draws.draw(ask(number), range(2))) for number in range(9)]
            await until(lambda: len(double.inputs) > 1)
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        drawn = await asyncio.gather(*later[:6], return_exceptions=True)
        double.polls = 0
        drawn += await asyncio.gather(*later[6:])
        await second.__aexit__(None, None, None)
        return drawn

    with WireServer(double) as server:
        drawn = asyncio.run(run(server))
        assert all(isinstance(one, ServiceError) for one in drawn[:6])
        assert all(isinstance(one, Completion) for pair in drawn[6:] for one in pair)
        double.faults.clear()
        drawn, _ = draw(tmp_path, chat(server), count=9)
    assert_paid_once(double, drawn, tmp_path, count=9)
