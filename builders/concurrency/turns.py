"""Limits how many tasks continue in one iteration of the event loop, so that the loop is not blocked for long."""

from __future__ import annotations

import asyncio
from collections import deque

TURNS = 4  # per iteration of the event loop


class Turns:
    """Limits how many tasks continue per iteration of the event loop.

    Many tasks can become ready together, for example when 256 replies arrive. Each task calls ``await turns.take()``
    before it works for a millisecond. In each iteration, ``TURNS`` tasks continue, in the order of their calls. Timers
    and other connections can run between the iterations.
    """

    def __init__(self) -> None:
        self._left = TURNS  # in this iteration
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        """Wait for a turn. Returns immediately if the present iteration has a turn left."""
        loop = asyncio.get_running_loop()
        if self._left == TURNS:
            loop.call_soon(self._begin_iteration, loop)
        if self._left > 0:
            self._left -= 1
            return
        turn = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _begin_iteration(self, loop: asyncio.AbstractEventLoop) -> None:
        self._left = TURNS
        while self._waiting and self._left:
            turn = self._waiting.popleft()
            if not turn.done():  # otherwise its task was cancelled
                turn.set_result(None)
                self._left -= 1
        if self._left < TURNS:
            loop.call_soon(self._begin_iteration, loop)
