"""Runs coroutines concurrently; the first error cancels the others."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

Result = TypeVar("Result")


async def run_together(coroutines: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """Run ``coroutines`` concurrently and return their results in order. The first error cancels the others."""
    pending = list(coroutines)
    if len(pending) == 1:
        return [await pending[0]]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in pending]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
