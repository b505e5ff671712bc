"""One event loop that outlives all stages, and a stage laid over a dataset with ``datasets.map``.

``Dataset.map`` gives every async map a loop of its own, and a client or a lock that was used in one loop fails in the
next (datasets 5.2). So all work runs in a loop that we own, in a thread beside. A shard is handed over whole, as one
batch with all its rows in flight: no row waits for another, and crossing threads once a shard instead of once a row
takes a thirtieth of the CPU (4,000 empty rows: 0.04 s against 1.09 s).
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import gc
import hashlib
import json
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from builders.arrow_rows import from_table, to_table
from builders.protocols import Stage

log = logging.getLogger(__name__)

GC_THRESHOLDS = (2_000, 10, 10)  # see ``fewer_collections``


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


def apply(
    dataset: Any,
    stage: Stage,
    loop: Loop,
    *,
    fingerprint: str,
    cache_file: Path | None = None,
    row_done: Callable[[str, Mapping[str, Any]], None] = lambda name, added: None,
) -> Any:
    """The columns that ``stage`` adds, as a dataset aligned with ``dataset``: one shard, all its rows in flight.

    With ``cache_file`` the result is kept there and taken from there the next time, without looking at anything else:
    name the file by its fingerprint. The first exception of a row ends the map, so a stage keeps a row's failure as
    data and raises only what must stop the run. ``row_done`` hears of each row that was worked on.
    """
    from datasets import Features

    if cache_file is not None:
        _drop_if_cut_off(cache_file, len(dataset))
    taken, adds = Features(dataset.features), Features(dict(stage.adds))

    def whole(table: Any) -> Any:
        return to_table(loop.run(_all(stage, from_table(table, taken), row_done)), adds)

    added = dataset.with_format("arrow").map(
        whole,
        batched=True,
        batch_size=None,
        features=adds,
        remove_columns=dataset.column_names,
        new_fingerprint=fingerprint,
        cache_file_name=str(cache_file) if cache_file else None,
        load_from_cache_file=cache_file is not None,
    )
    return added.with_format(None)


def beside(dataset: Any, added: Any) -> Any:
    """``dataset`` with the columns of ``added`` beside its own; nothing is copied."""
    from datasets import concatenate_datasets

    return concatenate_datasets([dataset, added], axis=1)


def fingerprint(*parts: Any) -> str:
    """A stable name (32 hex digits) of JSON-like ``parts``; the order of a mapping's keys does not matter."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True, default=str, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _drop_if_cut_off(cache_file: Path, rows: int) -> None:
    """Delete a cache file that does not hold ``rows`` rows: the machine went down before all of it was on disk."""
    from datasets import Dataset

    if not cache_file.exists():
        return
    try:
        whole = len(Dataset.from_file(str(cache_file))) == rows
    except Exception:  # Arrow and datasets raise many kinds for a file that ends early
        whole = False
    if not whole:
        log.warning("%s was cut off, and is made anew", cache_file)
        cache_file.unlink()


async def _all(
    stage: Stage, rows: list[dict[str, Any]], row_done: Callable[[str, Mapping[str, Any]], None]
) -> list[Mapping[str, Any]]:
    async def one(row: Mapping[str, Any]) -> Mapping[str, Any]:
        added = await stage(row)
        row_done(stage.name, added)
        return added

    try:
        async with asyncio.TaskGroup() as group:  # the first row that raises cancels its siblings
            tasks = [group.create_task(one(row)) for row in rows]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


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
