"""Objects open at their first use, once, and close at the end of their block. Their errors stop a run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bestofn.builders.concurrency.opening import OpensAtFirstUse
from bestofn.builders.errors import row_boundary


class Shop(OpensAtFirstUse[str]):
    """Opens when ``go`` is set; before that, each problem in ``problems`` ends one attempt."""

    _step = "unlocking the door"

    def __init__(self, *problems: Exception) -> None:
        self.go = asyncio.Event()
        self.problems = list(problems)
        self.events: list[str] = []

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[str]:
        self.events.append("opening")
        try:
            await self.go.wait()
            if self.problems:
                raise self.problems.pop(0)
            yield "bread"
        finally:
            self.events.append("closed")


def test_what_nobody_uses_is_never_opened() -> None:
    async def use() -> Shop:
        async with Shop() as shop:
            return shop

    assert asyncio.run(use()).events == []


def test_two_that_need_it_at_once_share_one_opening_and_it_closes_with_the_block() -> None:
    async def use() -> None:
        async with Shop() as shop:
            both = asyncio.gather(shop.opened(), shop.opened())
            await asyncio.sleep(0)
            assert shop.opening_state() == "unlocking the door (0 s)"
            shop.go.set()
            assert await both == ["bread", "bread"]
            assert (shop.opening_state(), shop.now_open()) == ("", "bread")
            assert shop.events == ["opening"]
        assert shop.events == ["opening", "closed"]
        async with shop:
            assert await shop.opened() == "bread"
        assert shop.events == ["opening", "closed"] * 2

    asyncio.run(use())


def test_a_caller_that_is_cancelled_does_not_end_the_opening_for_the_others() -> None:
    async def use() -> None:
        async with Shop() as shop:
            first, second = asyncio.ensure_future(shop.opened()), asyncio.ensure_future(shop.opened())
            await asyncio.sleep(0)
            first.cancel()
            shop.go.set()
            assert await second == "bread"
            assert shop.events == ["opening"]

    asyncio.run(use())


def test_a_block_that_ends_while_it_opens_cancels_and_cleans_up() -> None:
    async def use() -> None:
        async with Shop() as shop:
            waiting = asyncio.ensure_future(shop.opened())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert shop.events == ["opening", "closed"]
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(use())


def test_an_error_reaches_all_that_wait_stops_a_run_and_the_next_use_tries_again() -> None:
    async def use() -> None:
        async with Shop(ValueError("no key fits")) as shop:
            shop.go.set()
            both = await asyncio.gather(shop.opened(), shop.opened(), return_exceptions=True)
            assert [str(error) for error in both] == ["no key fits"] * 2
            with pytest.raises(ValueError, match="no key fits"), row_boundary():
                raise both[0]  # type: ignore[misc]
            assert await shop.opened() == "bread"
        assert shop.events == ["opening", "closed"] * 2

    asyncio.run(use())


def test_outside_its_block_it_refuses_because_nothing_would_close_it() -> None:
    with pytest.raises(RuntimeError, match="async with Shop"):
        asyncio.run(Shop().opened())
    with pytest.raises(RuntimeError, match="async with Shop"):
        Shop().now_open()
