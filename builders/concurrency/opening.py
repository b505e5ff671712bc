"""Opens sandboxes, models and sessions at their first use, so that nothing is opened that no query needs."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Generic, Self, TypeVar

from bestofn.builders.errors import always_stops_the_run

Opened = TypeVar("Opened")


class OpensAtFirstUse(Generic[Opened]):
    """An async context manager that opens nothing when it is entered; its first use opens it.

    A subclass implements ``_open``. Its methods call ``await self.opened()``, which returns what ``_open`` yields.
    Coroutines that need the object at the same time share one opening and its error. The error stops a run, whatever
    its type. The next use tries to open again.
    """

    _step = "opening"  # what ``_open`` does at the moment
    _started = 0.0
    _process = 0  # which entered the object
    _opening: asyncio.Task[Opened] | None = None
    _closing: AsyncExitStack | None = None

    @property
    def first_use(self) -> str:
        """What is opened and when, for the plan of a run."""
        raise NotImplementedError

    def _open(self) -> AbstractAsyncContextManager[Opened]:
        """Return the context manager that opens the object and, at the end, closes it."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        self._process = os.getpid()
        self._closing = AsyncExitStack()
        return self

    async def __aexit__(self, *exc: object) -> None:
        opening, closing = self._opening, self._closing
        self._opening = self._closing = None
        if opening is not None:
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)
        if closing is not None:
            await closing.aclose()

    async def opened(self) -> Opened:
        """Open the object if it is not open, and return what is open. Raises the error of ``_open``.

        Raises ``RuntimeError`` if the object was not entered in this process, because then nothing would close it.
        """
        if self._closing is None or self._process != os.getpid():
            raise RuntimeError(self._not_open())
        if self._opening is None:
            self._started = time.monotonic()
            self._opening = asyncio.ensure_future(self._open_once(self._closing))
        return await asyncio.shield(self._opening)

    def now_open(self) -> Opened:
        """Return what is open. Raises ``RuntimeError`` if the object is not open."""
        if self._opening is None or not self._opening.done() or self._process != os.getpid():
            raise RuntimeError(self._not_open())
        return self._opening.result()

    def opening_state(self) -> str:
        """Return what is being opened and the seconds since the start; "" if nothing is being opened."""
        if self._opening is None or self._opening.done():
            return ""
        return f"{self._current_step()} ({time.monotonic() - self._started:.0f} s)"

    def _current_step(self) -> str:
        return self._step

    async def _open_once(self, closing: AsyncExitStack) -> Opened:
        try:
            return await closing.enter_async_context(self._open())
        except Exception as error:  # any error, because no row can be completed without the object
            self._opening = None
            always_stops_the_run(error)
            raise

    def _not_open(self) -> str:
        name = type(self).__name__
        return f"{name} is not open in this process; use `async with {name}(…)`"


# A function that the first of several threads calls.


class Once:
    """Calls only the first function that it receives. Other threads wait until this call has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._called = False
        self._error: BaseException | None = None

    @property
    def called(self) -> bool:
        """Whether a function was called."""
        return self._called

    def __call__(self, function: Callable[[], None]) -> None:
        """Call ``function`` if this is the first call of the object. Every call raises the error of the first call."""
        with self._lock:
            if not self._called:
                self._called = True
                try:
                    function()
                except BaseException as error:  # any error, because the function did not complete
                    self._error = error
            if self._error is not None:
                raise self._error
