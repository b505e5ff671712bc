"""Runs coroutines concurrently, where the first error cancels the others, and runs the cleanup that blocks."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

Result = TypeVar("Result")


STARTED_AT_ONCE = 16  # tasks that start before other tasks of the event loop run


async def run_together(
    coroutines: Iterable[Coroutine[Any, Any, Result]], *, starting: asyncio.Lock | None = None
) -> list[Result]:
    """Run ``coroutines`` concurrently and return their results in order. The first error cancels the others.

    After every ``STARTED_AT_ONCE`` coroutines, the event loop can run other tasks before the next coroutines start.
    Calls with the same lock ``starting`` start their coroutines one call after another.
    """
    pending = list(coroutines)
    if len(pending) == 1:
        return [await pending[0]]
    tasks: list[asyncio.Task[Result]] = []
    try:
        async with asyncio.TaskGroup() as group, starting or contextlib.nullcontext():
            for coroutine in pending:
                tasks.append(group.create_task(coroutine))
                if len(tasks) % STARTED_AT_ONCE == 0:
                    await asyncio.sleep(0)
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    finally:
        for coroutine in pending[len(tasks) :]:
            coroutine.close()
    return [task.result() for task in tasks]


async def clean_up(function: Callable[[], Result]) -> Result:
    """Call ``function``, which frees resources and may block, in a thread.

    While the interpreter ends, it starts no threads, so ``function`` blocks the event loop then.
    """
    try:
        ended = asyncio.get_running_loop().run_in_executor(None, function)
    except RuntimeError:
        return function()
    return await ended
