"""Runs blocking work that cannot be interrupted (an import, loading a model, a long batch) in daemon threads.

Python waits for the threads of ``asyncio.to_thread`` when their loop closes and when the process ends. So Ctrl-C would
take effect only after a model has loaded. The process does not wait for the threads of this module.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import os
import queue
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from bestofn.builders.concurrency.process_end import abandoned

P = ParamSpec("P")
T = TypeVar("T")

_idle: list[
    _Thread
] = []  # the last one is reused first: native libraries create helper threads for each thread that calls them

os.register_at_fork(after_in_child=_idle.clear)  # a forked process has none of the threads


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


class _Thread(threading.Thread):
    """A daemon thread that runs queued jobs one after another. A process that ends does not wait for it."""

    def __init__(self) -> None:
        super().__init__(name="in_thread", daemon=True)
        self.jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.start()

    def run(self) -> None:
        """Run the queued jobs in an endless loop."""
        while True:
            self.jobs.get()()


async def in_thread(function: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Call ``function`` in another thread and return its result.

    If the caller is cancelled, the thread is abandoned: it continues, but nothing waits for it.
    """
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()
    ended = threading.Event()
    thread = _thread()

    def finish(set_result: Callable[[], None]) -> None:
        def set_if_awaited() -> None:
            if not result.done():
                set_result()

        ended.set()
        _idle.append(thread)  # done before the result is set, so that the caller's next job reuses this thread
        with contextlib.suppress(RuntimeError):  # the loop is closed, so no caller is waiting
            loop.call_soon_threadsafe(set_if_awaited)

    def work() -> None:
        try:
            value = context.run(function, *given, **named)
        except BaseException as error:  # the caller that waits for the result raises it
            finish(functools.partial(result.set_exception, error))
        else:
            finish(functools.partial(result.set_result, value))

    thread.jobs.put(work)
    try:
        return await result
    except asyncio.CancelledError:
        abandoned.append(ended)
        raise


def _thread() -> _Thread:
    try:
        return _idle.pop()
    except IndexError:
        return _Thread()
