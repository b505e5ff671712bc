"""Base classes of the sandboxes. They open at once or in the background, and execute programs in a pool of boxes."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Self

from bestofn.builders.records import Execution, Program
from bestofn.sandbox.pool import Pool
from bestofn.sandbox.workers import ProcessPool

STARTING = "starting the sandbox"


class Opening:
    """A context manager that opens a sandbox. Subclasses implement ``_open`` and ``_close``.

    If ``in_background`` is True, entering returns at once, and ``wait_until_open`` waits for the end of ``_open``.
    """

    in_background = False
    _opening: asyncio.Task[None] | None = None
    _step = STARTING
    _started = 0.0
    _process = 0  # which has opened the sandbox

    async def __aenter__(self) -> Self:
        self._started = time.monotonic()
        self._process = os.getpid()
        if self.in_background:
            self._opening = asyncio.ensure_future(self._open())
        else:
            await self._open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)
        await self._close()

    async def wait_until_open(self) -> None:
        """Wait until the sandbox is open. If opening fails, raise its error."""
        if self._opening is not None:
            await asyncio.shield(self._opening)

    def opening_state(self) -> str:
        """Return the current step of opening and the seconds since its start; "" if the sandbox is not being opened."""
        if self._opening is None or self._opening.done():
            return ""
        return f"{self._current_step()} ({time.monotonic() - self._started:.0f} s)"

    def _current_step(self) -> str:
        return self._step

    async def _open(self) -> None:
        raise NotImplementedError

    async def _close(self) -> None:
        raise NotImplementedError


class PooledSandbox(Opening):
    """A sandbox that executes its programs in a pool of boxes. Subclasses set ``_pool`` in ``_open``."""

    name = ""
    _pool: Pool | None = None

    @property
    def backend(self) -> str:
        """The name of the sandbox that executes the programs."""
        return self.name

    def decoders(self) -> ProcessPool:
        """Return the worker processes that decode and compare long results. The sandbox must be open."""
        return self._opened().decoders

    async def run(self, program: Program) -> Execution:
        """Execute ``program`` in a free box and return its execution. Waits until the sandbox is open."""
        await self.wait_until_open()
        return await self._opened().run(program)

    def _opened(self) -> Pool:
        if self._pool is None or self._process != os.getpid():
            name = type(self).__name__
            raise RuntimeError(f"{name} is not open in this process; use `async with {name}() as sandbox`")
        return self._pool

    async def _close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()
