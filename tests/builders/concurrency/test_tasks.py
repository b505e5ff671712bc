"""Coroutines that run together: the order in which several calls start theirs."""

from __future__ import annotations

import asyncio

import pytest

from bestofn.builders.concurrency.tasks import run_together


@pytest.mark.parametrize("fails", [False, True])
def test_calls_with_one_lock_start_their_coroutines_one_call_after_another(fails: bool) -> None:
    started: list[str] = []

    async def work(name: str, number: int) -> None:
        started.append(name)
        await asyncio.sleep(0)
        if fails and (name, number) == ("a", 39):
            raise ValueError("stop")

    async def calls() -> list[object]:
        lock = asyncio.Lock()
        both = [run_together([work(name, number) for number in range(40)], starting=lock) for name in "ab"]
        return await asyncio.gather(*both, return_exceptions=True)

    first, second = asyncio.run(calls())
    assert isinstance(first, ValueError) == fails
    assert second == [None] * 40
    assert started == ["a"] * 40 + ["b"] * 40
