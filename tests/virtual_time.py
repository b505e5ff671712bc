"""Runs coroutines in virtual time: when every task waits, the clock jumps to the next timer, so that no test waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose ``time`` is virtual and starts at 0."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self.now = max(self.now, self._scheduled[0].when())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


def run_virtually(work: Callable[[Callable[[], float]], Coroutine[Any, Any, T]]) -> T:
    """Run ``work(clock)`` in virtual time and return its result. ``clock`` returns the virtual seconds."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        loop = runner.get_loop()
        return runner.run(work(loop.time))
