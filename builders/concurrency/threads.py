"""Work that nothing can interrupt, in threads that a stop leaves behind: an import, a model's loading, a long batch.

The threads of ``asyncio.to_thread`` are waited for when their loop closes and again when Python ends, so that Ctrl-C
while a model loads would be answered when it has loaded.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import os
import queue
import sys
import threading
from collections.abc import Callable
from typing import NoReturn, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_idle: list[_Thread] = []  # whoever worked last is next: beside each, native libraries keep threads of their own
_left: list[threading.Event] = []  # set when what was left behind has ended


class _Thread(threading.Thread):
    """Does one job after another; Python does not wait for it when it ends."""

    def __init__(self) -> None:
        super().__init__(name="in_thread", daemon=True)
        self.jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.start()

    def run(self) -> None:
        while True:
            self.jobs.get()()


async def in_thread(function: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """``function(…)`` in a thread beside. When the caller is cancelled, nobody waits for it any more."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()
    ended = threading.Event()
    thread = _thread()

    def tell(tell_it: Callable[..., None], outcome: object) -> None:
        def now() -> None:
            if not result.done():
                tell_it(outcome)

        ended.set()
        _idle.append(thread)  # before anybody hears of it, so that the next job comes here
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(now)

    def work() -> None:
        try:
            value = context.run(function, *given, **named)
        except BaseException as error:
            tell(result.set_exception, error)
        else:
            tell(result.set_result, value)

    thread.jobs.put(work)
    try:
        return await result
    except asyncio.CancelledError:
        _left.append(ended)
        raise


def _thread() -> _Thread:
    try:
        return _idle.pop()
    except IndexError:
        return _Thread()


def end(code: int | str | None) -> NoReturn:
    """End the process as ``SystemExit(code)`` would, but at once if threads were left behind that still run.

    A thread inside a native library may crash an interpreter that is taken down around it, so none is.
    """
    if not all(ended.is_set() for ended in _left):
        if isinstance(code, str):
            print(code, file=sys.stderr)
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))
    raise SystemExit(code)
