"""Two processes that share a journal pay for no sample twice, and share one budget.

In these tests, two ``Journal`` objects for one file act as two processes: each has its own connection and claims.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bestofn.builders.concurrency.process import this_process
from bestofn.builders.errors import BudgetError, JournalError, ServiceError
from bestofn.builders.providers.scripted import Scripted
from bestofn.builders.records import Completion, Request, Sampling
from bestofn.builders.sampling import claims as claims_module
from bestofn.builders.sampling.claims import batch_key
from bestofn.builders.sampling.cost import Ledger
from bestofn.builders.sampling.journal import Journal
from bestofn.builders.sampling.limiter import RateLimits
from bestofn.builders.sampling.sampler import JournaledSampler, sampler

ASK = Request(messages=({"role": "user", "content": "1 + 1?"},), sampling=Sampling(seed=7))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims_module, "LOOK_S", 0.02)


@asynccontextmanager
async def process(path: Path, provider: Scripted, ledger: Ledger | None = None) -> AsyncIterator[JournaledSampler]:
    """Yield an open sampler with a new ``Journal`` object for ``path``. It acts as a separate process."""
    journal = Journal(path)
    draws = sampler(provider, journal, ledger or Ledger())
    async with journal, draws:
        yield draws


def by_seed(request: Request, seed: int) -> str:
    return f"draw {seed}"


def asked(n: int) -> Request:
    return replace(ASK, messages=({"role": "user", "content": f"{n}?"},))


async def one_by_one(draws: JournaledSampler, numbers: range) -> None:
    for number in numbers:
        await draws.draw(asked(number))


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def rows(path: Path, query: str) -> list[tuple]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def test_a_process_that_is_alone_writes_no_claims(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"

    async def use() -> None:
        provider = Scripted(by_seed, latency_s=0.1)
        async with process(path, provider) as draws:
            drawing = asyncio.ensure_future(draws.draw(ASK, range(4)))
            await asyncio.sleep(0.05)
            assert rows(path, "SELECT count(*) FROM claims") == [(0,)]
            assert rows(path, "SELECT shared FROM owners") == [(0,)]
            await drawing
        assert rows(path, "SELECT id FROM owners") == []

    asyncio.run(use())


def test_a_process_that_starts_later_waits_for_the_samples_in_flight(tmp_path: Path) -> None:
    first, second = Scripted(by_seed, latency_s=0.3), Scripted(by_seed)

    async def use() -> None:
        async with process(tmp_path / "j.sqlite", first) as one:
            drawing = asyncio.ensure_future(one.draw(ASK, range(4)))
            await until(lambda: bool(first.requests))
            async with process(tmp_path / "j.sqlite", second) as other:
                drawn = await other.draw(ASK, range(6))
            assert [answer.text for answer in drawn] == [f"draw {seed}" for seed in range(7, 13)]
            await drawing

    asyncio.run(use())
    assert len(first.requests) == 1
    assert [request.sampling.seed for request in second.requests] == [11], "only the samples 4 and 5"


class Flaky(Scripted):
    """A provider whose first ``failures`` requests fail."""

    failures = 1

    async def sample(self, request: Request, n: int) -> list[Completion]:
        self.failures -= 1
        if self.failures >= 0:
            await asyncio.sleep(0.1)
            raise ServiceError("down")
        return await super().sample(request, n)


def test_a_sample_whose_request_failed_is_requested_by_the_process_that_waits(tmp_path: Path) -> None:
    first, second = Flaky(by_seed, limits=RateLimits(retries=0)), Scripted(by_seed)

    async def use() -> None:
        async with process(tmp_path / "j.sqlite", first) as one, process(tmp_path / "j.sqlite", second) as other:
            failing = asyncio.ensure_future(one.draw(ASK))
            await asyncio.sleep(0.05)
            (answer,) = await other.draw(ASK)
            assert isinstance(answer, Completion)
            assert isinstance((await failing)[0], ServiceError)

    asyncio.run(use())
    assert len(second.requests) == 1


@pytest.mark.parametrize("seed", range(6))
def test_processes_with_overlapping_work_request_each_sample_once(tmp_path: Path, seed: int) -> None:
    """Each sample is paid for once, even if processes start and end at different moments."""
    draw = random.Random(seed)

    async def work(most: int) -> None:
        await asyncio.sleep(draw.random() * 0.1)
        provider = Scripted(by_seed, latency_s=draw.random() * 0.02, max_n=most)
        async with process(tmp_path / "j.sqlite", provider) as draws:
            for _ in range(3):
                asks = [(asked(draw.randrange(9)), range(draw.randrange(1, 8))) for _ in range(7)]
                await asyncio.gather(*(draws.draw(*one) for one in asks))

    async def use() -> None:
        await asyncio.gather(*map(work, (1, 3, 8, 2)))

    asyncio.run(use())
    answers, paid = rows(tmp_path / "j.sqlite", "SELECT (SELECT count(*) FROM answers), sum(answers) FROM calls")[0]
    assert answers == paid, "no completion was paid for twice"


def test_processes_that_share_a_journal_share_the_budget(tmp_path: Path) -> None:
    price = {"models": {"scripted": {"call": 0.1}}}
    ledgers = [Ledger(budget_usd=2.0, prices=price) for _ in range(2)]
    providers = [Scripted(by_seed, latency_s=0.05, limits=RateLimits(concurrency=2)) for _ in ledgers]

    async def spend(provider: Scripted, ledger: Ledger, numbers: range) -> None:
        async with process(tmp_path / "j.sqlite", provider, ledger) as draws:
            with pytest.raises(BudgetError, match="other processes"):
                await one_by_one(draws, numbers)

    async def use() -> None:
        await asyncio.gather(
            *(
                spend(*both, range(100 * place, 100 * place + 50))
                for place, both in enumerate(zip(providers, ledgers, strict=True))
            )
        )

    asyncio.run(use())
    ((spent,),) = rows(tmp_path / "j.sqlite", "SELECT sum(usd) FROM calls")
    assert 2.0 <= round(spent, 6) <= 2.4, "only the requests in flight exceed the budget"


def test_dollars_that_another_process_has_reserved_are_not_spent(tmp_path: Path) -> None:
    async def use() -> None:
        one, other = Ledger(budget_usd=2.0), Ledger(budget_usd=2.0)
        path = tmp_path / "j.sqlite"
        async with process(path, Scripted(by_seed), one), process(path, Scripted(by_seed), other):
            one.set_aside(1.5)
            await until(lambda: other.usd_aside_elsewhere == 1.5)
            assert not other.fits(1.0)
            one.set_aside(-1.5)
            await until(lambda: other.usd_aside_elsewhere == 0)
            assert other.fits(1.0)

    asyncio.run(use())


def test_a_process_that_is_left_alone_stops_writing_claims(tmp_path: Path) -> None:
    async def use() -> None:
        async with Journal(tmp_path / "j.sqlite") as one:
            async with Journal(tmp_path / "j.sqlite") as other:
                assert one.claims.is_shared
                assert other.claims.is_shared
                assert await one.claims.take([b"a", b"b"]) == {b"a", b"b"}
                assert await other.claims.take([b"b", batch_key("c")]) == {batch_key("c")}
                one.claims.release([b"b"])
                while not await other.claims.take([b"b"]):
                    await other.claims.wait()
            await until(lambda: not one.claims.is_shared)
            async with Journal(tmp_path / "j.sqlite") as third:
                assert await third.claims.take([b"a", b"b"]) == {b"b"}, "what the first held in memory is written again"

    asyncio.run(use())


KILLED = textwrap.dedent("""
    import asyncio, sys
    from pathlib import Path
    from bestofn.builders.sampling.journal import Journal

    async def main():
        async with Journal(Path(sys.argv[1])) as journal:
            await journal.claims.take([b"a"])
            print("ready", flush=True)
            while not journal.claims.is_shared:
                await asyncio.sleep(0.01)
            print("shared", flush=True)
            await asyncio.sleep(60)

    asyncio.run(main())
""")


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Yield a process that is the only user of the journal and has claimed ``a``.

    It prints ``shared`` once it writes its claims to the file.
    """
    words = [sys.executable, "-c", KILLED, str(tmp_path / "j.sqlite")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert line(process) == "ready\n"
        yield process
        process.kill()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_the_claims_of_a_killed_process_are_free(
    tmp_path: Path, killed: subprocess.Popen[str], caplog: pytest.LogCaptureFixture
) -> None:
    async def use() -> None:
        async with Journal(tmp_path / "j.sqlite") as journal:
            assert line(killed) == "shared\n"
            assert await journal.claims.take([b"a"]) == set()
            killed.kill()
            while not await journal.claims.take([b"a"]):
                await journal.claims.wait()

    asyncio.run(use())
    assert f"process {killed.pid} on" in caplog.text


def test_a_process_that_does_not_answer_is_named(
    tmp_path: Path, killed: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims_module, "ANSWER_S", 0.1)
    os.kill(killed.pid, signal.SIGSTOP)
    with pytest.raises(JournalError, match=rf"process {killed.pid} on .*may be stopped"):
        asyncio.run(Journal(tmp_path / "j.sqlite").__aenter__())


async def other_owner(path: Path, **changes: str) -> str:
    """Add an owner from another machine or container to the journal, and return its id."""
    async with Journal(path):
        pass
    process = replace(this_process(), **changes).as_json()
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("INSERT INTO owners VALUES ('other', ?, 1.0, 1, 0.0)", (json.dumps(process),))
        connection.execute("INSERT INTO claims VALUES (X'61', 'other')")
    connection.close()
    return "other"


def test_a_journal_that_another_machine_uses_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"

    async def beat() -> None:
        for number in range(1000):
            await asyncio.sleep(0.02)
            connection = sqlite3.connect(path)
            with connection:
                connection.execute("UPDATE owners SET heartbeat = ? WHERE id = 'other'", (float(number),))
            connection.close()

    async def use() -> None:
        await other_owner(path, boot="another", host="node7")
        beating = asyncio.ensure_future(beat())
        with pytest.raises(JournalError, match=r"on node7, which is another machine"):
            await Journal(path).__aenter__()
        beating.cancel()
        assert rows(path, "SELECT id FROM owners") == [("other",)]

    asyncio.run(use())


@pytest.mark.parametrize("change", ["boot", "namespace"])
def test_an_owner_elsewhere_without_a_heartbeat_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr(claims_module, "STALE_S", 0.1)
    path = tmp_path / "j.sqlite"

    async def use() -> None:
        await other_owner(path, **{change: "another"})
        async with Journal(path) as journal:
            while not await journal.claims.take([b"a"]):
                await journal.claims.wait()

    asyncio.run(use())


def test_a_damaged_owner_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"

    async def use() -> None:
        await other_owner(path)
        connection = sqlite3.connect(path)
        with connection:
            connection.execute("UPDATE owners SET process = '[1' WHERE id = 'other'")
        connection.close()
        async with Journal(path) as journal:
            assert await journal.claims.take([b"a"]) == {b"a"}

    asyncio.run(use())


def test_a_journal_of_an_earlier_version_gets_the_tables(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    Journal(path).open().close()
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("DROP TABLE owners")
        connection.execute("DROP TABLE claims")
    connection.close()

    async def use() -> None:
        async with Journal(path) as journal:
            assert await journal.claims.take([b"a"]) == {b"a"}

    asyncio.run(use())
