"""Runs blocking work that cannot be interrupted (an import, loading a model, a long batch) in daemon threads.

Python waits for the threads of ``asyncio.to_thread`` when their loop closes and again when the process ends. So Ctrl-C
while a model loads would only take effect after the loading. The threads of this module are abandoned instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import logging
import os
import queue
import sys
import threading
from collections.abc import Callable
from typing import NoReturn, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_idle: list[
    _Thread
] = []  # the thread used last is reused first, because native libraries keep further threads per thread
_abandoned: list[threading.Event] = []  # set when the abandoned work has ended


class _Thread(threading.Thread):
    """Does one job after another. Python does not wait for it when the process ends."""

    def __init__(self) -> None:
        super().__init__(name="in_thread", daemon=True)
        self.jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.start()

    def run(self) -> None:
        """Do the jobs of the queue, forever."""
        while True:
            self.jobs.get()()


async def in_thread(function: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """The result of ``function(…)`` in another thread. Cancelling the caller abandons the work."""
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
        _idle.append(thread)  # before the result is set, so that the next job comes to this thread
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits for the result
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
        _abandoned.append(ended)
        raise


def _thread() -> _Thread:
    try:
        return _idle.pop()
    except IndexError:
        return _Thread()


def exit_process(code: int | str | None) -> NoReturn:
    """End the process as ``SystemExit(code)`` does, but immediately if abandoned threads still run.

    Then the interpreter is not shut down, because a thread inside a native library may crash during that.
    """
    if not all(ended.is_set() for ended in _abandoned):
        if isinstance(code, str):
            print(code, file=sys.stderr)
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))
    raise SystemExit(code)
