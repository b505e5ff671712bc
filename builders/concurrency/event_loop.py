"""The single event loop of a process, in which all coroutines of the process run.

One loop is needed because a client or lock that was used in one event loop fails in another. The loop runs during all
stages. When it ends, it closes the objects that were opened in it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, TypeVar

from bestofn.builders.concurrency.garbage import fewer_collections

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal

Result = TypeVar("Result")


class Loop:
    """An event loop in a separate thread. Inside ``with Loop() as loop``, other threads call ``loop.run(coroutine)``.

    The thread starts when the loop is first used. ``cancel`` cancels the tasks in flight. Each task gets a
    ``CancelledError`` and can clean up in its ``finally`` block. ``starting`` is for the calls of ``run_together`` that
    start their coroutines one after another.
    """

    def __enter__(self) -> Loop:
        self._stack = contextlib.ExitStack()
        self._stack.enter_context(fewer_collections())
        self._started: BlockingPortal | None = None
        self._starting = threading.Lock()
        self._pending: set[concurrent.futures.Future[Any]] = set()
        self._opened: list[_OpenContexts] = []
        self._cancelled = self._exited = False
        self.starting = asyncio.Lock()
        return self

    def __exit__(self, *exc: object) -> None:
        self.cancel()
        try:
            for opened in list(self._opened):  # for threads that are still inside ``open``
                self._portal.call(opened.leave)
        finally:
            self._exited = True
            self._stack.__exit__(None, None, None)

    @property
    def _portal(self) -> BlockingPortal:
        """The portal to the thread of the loop. The first use starts this thread."""
        from anyio.from_thread import start_blocking_portal

        with self._starting:
            if self._started is None:
                options = {"use_uvloop": _has_uvloop()}
                portal = start_blocking_portal(backend="asyncio", backend_options=options)
                self._started = self._stack.enter_context(portal)
            return self._started

    def submit(self, coroutine: Coroutine[Any, Any, Result]) -> concurrent.futures.Future[Result]:
        """Start ``coroutine`` in the loop and return its future. Raises ``CancelledError`` after ``cancel``."""
        if self._cancelled:
            coroutine.close()
            raise asyncio.CancelledError("the run is being stopped")
        future = self._portal.start_task_soon(_run, coroutine)
        self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        if self._cancelled:  # ``cancel`` was called after the check above
            future.cancel()
        return future

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run ``coroutine`` in the loop and return its result. The calling thread waits until it ends."""
        return self.submit(coroutine).result()

    def cancel(self) -> None:
        """Refuse new coroutines and cancel the running ones. Returns immediately."""
        self._cancelled = True
        for future in list(self._pending):
            future.cancel()

    @contextlib.contextmanager
    def open(self, *objects: object) -> Iterator[None]:
        """Enter all async context managers in ``objects`` in order; exit them in reverse order after the block.

        Objects of other types are ignored. If ``cancel`` is called before all objects are entered, the entered ones are
        closed. An object whose ``__aenter__`` is cancelled must clean up after itself.
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
    """The open context managers of one call of ``Loop.open``. They are entered and exited one after another."""

    def __init__(self) -> None:
        self._contexts: list[AbstractAsyncContextManager[object]] = []
        self._lock = asyncio.Lock()

    async def enter(self, objects: Sequence[object]) -> None:
        """Enter the async context managers in ``objects`` in order. If one fails, exit those entered before it."""
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
        """Exit all open contexts in reverse order. Afterwards, raise the first error that occurred, if any."""
        async with self._lock:
            errors = await self._close()
        if errors:
            raise errors[0]

    async def _close(self) -> list[Exception]:
        errors: list[Exception] = []
        while self._contexts:
            try:
                await self._contexts.pop().__aexit__(None, None, None)
            except Exception as error:  # any type: the other contexts must still be closed
                errors.append(error)
        return errors


async def _run(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run ``coroutine`` in a separate asyncio task, which is cancelled only once.

    anyio cancels its own tasks again and again until they end. In such a task, ``coroutine`` could not use ``await`` to
    clean up.
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


def _has_uvloop() -> bool:
    import importlib.util

    return importlib.util.find_spec("uvloop") is not None
