"""The one event loop of a process: it outlives every stage, and closes what was opened in it.

A client or a lock that was used in one event loop fails in the next one, so all coroutines run here.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import gc
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any

GC_THRESHOLDS = (2_000, 10, 10)  # see ``fewer_collections``  # see ``fewer_collections``


class Loop:
    """The one event loop. ``with Loop() as loop: loop.run(coroutine)`` from any thread.

    ``cancel`` ends what is under way: each task gets its ``CancelledError`` and cleans up in its own ``finally``.
    """

    def __enter__(self) -> Loop:
        from anyio.from_thread import start_blocking_portal

        self._stack = contextlib.ExitStack()
        self._stack.enter_context(fewer_collections())
        options = {"use_uvloop": _has_uvloop()}
        self._portal = self._stack.enter_context(start_blocking_portal(backend="asyncio", backend_options=options))
        self._pending: set[concurrent.futures.Future[Any]] = set()
        self._opened: list[_Opened] = []
        self._cancelled = self._left = False
        return self

    def __exit__(self, *exc: object) -> None:
        self.cancel()
        try:
            for opened in list(self._opened):  # by threads that may not come to it before the loop is gone
                self._portal.call(opened.leave)
        finally:
            self._left = True
            self._stack.__exit__(None, None, None)

    def submit(self, coroutine: Coroutine[Any, Any, Any]) -> concurrent.futures.Future[Any]:
        """Start ``coroutine`` in the loop; its result is the future's."""
        if self._cancelled:
            coroutine.close()
            raise asyncio.CancelledError("the run is being stopped")
        future = self._portal.start_task_soon(_run, coroutine)
        self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        if self._cancelled:  # in this very moment
            future.cancel()
        return future

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run ``coroutine`` in the loop and wait for it in this thread."""
        return self.submit(coroutine).result()

    def cancel(self) -> None:
        """Stop taking work and cancel what is under way; returns at once."""
        self._cancelled = True
        for future in list(self._pending):
            future.cancel()

    @contextlib.contextmanager
    def open(self, *objects: Any) -> Iterator[None]:
        """Enter the async contexts of ``objects`` in the loop, in order; leave them in reverse. ``cancel`` ends the
        opening; what was open by then is closed, and an ``__aenter__`` that is cancelled cleans up after itself."""
        opened = _Opened()
        self._opened.append(opened)
        try:
            self.run(opened.enter(objects))
            yield
        finally:
            if not self._left:
                self._portal.call(opened.leave)
                self._opened.remove(opened)


class _Opened:
    """What is open of the objects of one ``Loop.open``; entered and left in the loop, by one at a time."""

    def __init__(self) -> None:
        self._things: list[Any] = []
        self._turn = asyncio.Lock()

    async def enter(self, objects: Sequence[Any]) -> None:
        async with self._turn:
            try:
                for thing in objects:
                    if hasattr(thing, "__aenter__"):
                        await thing.__aenter__()
                        self._things.append(thing)
            except BaseException:
                await self._close()
                raise

    async def leave(self) -> None:
        """Close what is still open. Raises the first error, when all are closed."""
        async with self._turn:
            errors = await self._close()
        if errors:
            raise errors[0]

    async def _close(self) -> list[Exception]:
        errors: list[Exception] = []
        while self._things:
            try:
                await self._things.pop().__aexit__(None, None, None)
            except Exception as error:  # the others must still be closed
                errors.append(error)
        return errors


async def _run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """In a task of its own, cancelled once: anyio cancels at every turn of the loop, and nothing could clean up."""
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
    """Within it, Python's cyclic garbage collector runs less often, and passes over what is there by now.

    A thousand requests under way are some ten thousand objects that live for seconds and are in no cycle; by Python's
    own thresholds, looking through them takes a fifth of the CPU of asking.
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
