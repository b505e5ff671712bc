"""Functions for tests with ``batch_doubles``: they draw samples in batch mode, interrupt runs, and read journals."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from bestofn.builders.providers.anthropic_messages import AnthropicMessages
from bestofn.builders.providers.openai_chat import OpenAIChat
from bestofn.builders.records import Request, Sampling
from bestofn.builders.sampling.cost import Ledger
from bestofn.builders.sampling.journal import Journal
from bestofn.builders.sampling.provider import Batching
from bestofn.builders.sampling.sampler import sampler
from tests.wire_server import WireServer

TERMS = Batching(gather_s=0.3, poll_s=0.02, most=1000)
PRICES = {"m": {"call": 1.0}}


def ask(number: int) -> Request:
    return Request(messages=({"role": "user", "content": f"Q{number}"},), sampling=Sampling(seed=0))


def draw(
    tmp_path, provider, count: int = 6, n: int = 2, ledger: Ledger | None = None
) -> tuple[list[Any], dict[str, Any]]:
    """Draw ``n`` samples of each of ``count`` questions. Return the samples and the totals of the ledger."""

    async def run():
        journal, book = Journal(tmp_path / "j.sqlite"), ledger or Ledger(prices=PRICES)
        draws = sampler(provider, journal, book)
        async with journal, provider, draws:
            drawn = await asyncio.gather(*(draws.draw(ask(number), range(n)) for number in range(count)))
        return drawn, book.totals()

    return asyncio.run(run())


def chat(server: WireServer, **settings: Any) -> OpenAIChat:
    return OpenAIChat(base_url=f"{server.url}/v1", **{"model": "m", "mode": "batch", "batching": TERMS} | settings)


def states(tmp_path) -> list[str]:
    journal = Journal(tmp_path / "j.sqlite").open()
    rows = [row[0] for row in journal.rows("SELECT state FROM batches")]
    journal.close()
    return rows


def messages(server: WireServer, **settings: Any) -> AnthropicMessages:
    given = {"model": "m", "mode": "batch", "batching": TERMS, "cache": None} | settings
    return AnthropicMessages(base_url=server.url, **given)


def leave_once(tmp_path, server: WireServer, arrived: Callable[[], object], n: int = 2, **settings: Any) -> None:
    """Start a run, and cancel it as soon as ``arrived`` returns a true value."""
    leave(tmp_path, chat(server, **settings), arrived, n)


def leave(tmp_path, provider: OpenAIChat | AnthropicMessages, arrived: Callable[[], object], n: int = 2) -> None:
    """Start a run with ``provider``, and cancel it as soon as ``arrived`` returns a true value."""

    async def run() -> None:
        journal = Journal(tmp_path / "j.sqlite")
        draws = sampler(provider, journal, Ledger(prices=PRICES))
        async with journal, provider, draws:
            waiting = [asyncio.create_task(draws.draw(ask(number), range(n))) for number in range(6)]
            while not arrived():  # noqa: ASYNC110  # the double lives in another thread
                await asyncio.sleep(0.01)
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    asyncio.run(run())


def calls(tmp_path) -> list[tuple[int, float]]:
    """Return the calls in the journal: (mode, number of samples, dollars)."""
    journal = Journal(tmp_path / "j.sqlite").open()
    rows = journal.rows("SELECT mode, count(*), sum(usd) FROM calls GROUP BY mode ORDER BY mode")
    journal.close()
    return rows
