"""The one event loop of a process. It outlives all stages and closes what was opened in it.

A client or a lock that was used in one event loop fails in another, so all coroutines of a process run in this one.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import gc
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

GC_THRESHOLDS = (2_000, 10, 10)  # see ``fewer_collections``
Result = TypeVar("Result")


class Loop:
    """The event loop, in its own thread: ``with Loop() as loop: loop.run(coroutine)`` from any other thread.

    ``cancel`` ends the tasks in flight: each gets a ``CancelledError`` and cleans up in its own ``finally``.
    """

    def __enter__(self) -> Loop:
        from anyio.from_thread import start_blocking_portal

        self._stack = contextlib.ExitStack()
        self._stack.enter_context(fewer_collections())
        options = {"use_uvloop": _has_uvloop()}
        self._portal = self._stack.enter_context(start_blocking_portal(backend="asyncio", backend_options=options))
        self._pending: set[concurrent.futures.Future[Any]] = set()
        self._opened: list[_OpenContexts] = []
        self._cancelled = self._exited = False
        return self

    def __exit__(self, *exc: object) -> None:
        self.cancel()
        try:
            for opened in list(self._opened):  # a thread in ``open`` may not reach its own end before the loop is gone
                self._portal.call(opened.leave)
        finally:
            self._exited = True
            self._stack.__exit__(None, None, None)

    def submit(self, coroutine: Coroutine[Any, Any, Result]) -> concurrent.futures.Future[Result]:
        """Start ``coroutine`` in the loop. Raises ``CancelledError`` after ``cancel``."""
        if self._cancelled:
            coroutine.close()
            raise asyncio.CancelledError("the run is being stopped")
        future = self._portal.start_task_soon(_run, coroutine)
        self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        if self._cancelled:  # between the check above and now
            future.cancel()
        return future

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run ``coroutine`` in the loop and wait for its result in this thread."""
        return self.submit(coroutine).result()

    def cancel(self) -> None:
        """Refuse new coroutines and cancel those in flight. Returns at once."""
        self._cancelled = True
        for future in list(self._pending):
            future.cancel()

    @contextlib.contextmanager
    def open(self, *objects: object) -> Iterator[None]:
        """Enter those of ``objects`` that are async contexts, in order; leave them in reverse order after the block.

        ``cancel`` also ends the opening. What is open by then is closed. An ``__aenter__`` that is cancelled must clean
        up itself.
        """
        opened = _OpenContexts()
        self._opened.append(opened)
        try:
            self.run(opened.enter(objects))
            yield
        finally:
            if not self._exited:
                self._portal.call(opened.leave)
                self._opened.remove(opened)


class _OpenContexts:
    """The open contexts of one ``Loop.open``. They are entered and left in the loop, by one task at a time."""

    def __init__(self) -> None:
        self._contexts: list[AbstractAsyncContextManager[object]] = []
        self._lock = asyncio.Lock()

    async def enter(self, objects: Sequence[object]) -> None:
        """Enter the contexts in order. If one fails, those entered before it are closed."""
        async with self._lock:
            try:
                for thing in objects:
                    if isinstance(thing, AbstractAsyncContextManager):
                        await thing.__aenter__()
                        self._contexts.append(thing)
            except BaseException:
                await self._close()
                raise

    async def leave(self) -> None:
        """Close what is still open. Raises the first error after all are closed."""
        async with self._lock:
            errors = await self._close()
        if errors:
            raise errors[0]

    async def _close(self) -> list[Exception]:
        errors: list[Exception] = []
        while self._contexts:
            try:
                await self._contexts.pop().__aexit__(None, None, None)
            except Exception as error:  # any kind: the other contexts must still be closed
                errors.append(error)
        return errors


async def _run(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run ``coroutine`` as its own task, which is cancelled only once.

    anyio cancels its own tasks again at every turn of the loop, so they could not clean up.
    """
    from anyio import CancelScope

    task = asyncio.ensure_future(coroutine)
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        task.cancel()
        with CancelScope(shield=True):
            await asyncio.gather(task, return_exceptions=True)
        raise
    return task.result()


@contextlib.contextmanager
def fewer_collections() -> Iterator[None]:
    """Inside the block, Python's cyclic garbage collector runs less often and ignores the objects that exist now.

    A thousand requests in flight are about ten thousand objects that live for seconds and are in no reference cycle.
    With Python's default thresholds, scanning them takes a fifth of the CPU time of sending requests.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _has_uvloop() -> bool:
    import importlib.util

    return importlib.util.find_spec("uvloop") is not None
