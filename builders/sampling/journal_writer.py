"""The writing thread of a journal: commits all waiting writes in one transaction (group commit).

Started by ``builders.sampling.journal.Journal``. Replies are already paid for, so the thread retries while another
process locks the file. If one write of a group fails, the other writes are still committed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from bestofn.builders.errors import JournalError
from bestofn.builders.records import Usage
from bestofn.builders.sampling import journal_file
from bestofn.builders.sampling.journal_file import (
    as_journal_error,
    compressed,
    connect,
    is_locked,
    packed_reply,
    transaction,
)

LOCKED_S = 3600.0  # the run stops if another process locks the file for longer
MOST_TOKENS = 1 << 60
log = logging.getLogger(__name__)
T = TypeVar("T")

Statement = tuple[str, Sequence[object] | dict[str, object]]
Transaction = Callable[[sqlite3.Connection], T]
"""A function that reads and changes the file. It is called again if its first transaction was rolled back."""


@dataclass(slots=True)
class Entry:
    """One reply with its request, and the sample index of each choice in the reply.

    ``request`` is the key (``builders.sampling.request_key``), ``body`` the request as JSON, and ``indices`` the sample
    indices of choice 0, 1, and so on. ``usd`` is the cost of all choices together; None if no price is known.
    """

    request: bytes
    provider: str
    body: bytes
    attempt: int
    indices: tuple[int, ...]
    reply: bytes
    request_id: str = ""
    seconds: float = 0.0
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    usd: float | None = None
    mode: str = "online"
    at: float = field(default_factory=time.time)  # seconds since 1970


@dataclass(slots=True)
class Write:
    """One waiting write: an entry, SQL statements, or a function that changes the file (``Transaction``).

    ``done`` is a future with the result of the write. For an entry, the result is whether all its answers were new. For
    statements, it is True. For a function, it is the function's return value.
    """

    what: Entry | tuple[Statement, ...] | Transaction[Any]
    done: asyncio.Future[Any]


class JournalWriter:
    """Writes to the journal at ``path`` in a separate thread, which runs until ``stop``.

    ``failure`` is the error of the first write that failed.
    """

    def __init__(self, path: Path, loop: asyncio.AbstractEventLoop) -> None:
        self.failure: JournalError | None = None  # the first write that failed
        self._path = path
        self._loop = loop
        self._gathered: list[Write] = []  # in this iteration of the event loop
        self._waiting: queue.SimpleQueue[list[Write] | None] = queue.SimpleQueue()
        self._connection: sqlite3.Connection | None = None
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    async def write(self, what: Entry | tuple[Statement, ...]) -> bool:
        """Write ``what`` and wait until it is on disk. Raises ``JournalError`` if the write fails.

        Returns whether all answers of an entry were new; for statements, returns True.
        """
        return await self._submit(what)

    async def run(self, transaction: Transaction[T]) -> T:
        """Call ``transaction`` in the writing thread, wait until its changes are on disk, and return its result."""
        return await self._submit(transaction)

    def submit(self, transaction: Transaction[T]) -> asyncio.Future[T]:
        """Queue ``transaction`` and return the future of its result."""
        return self._submit(transaction)

    def _submit(self, what: Entry | tuple[Statement, ...] | Transaction[Any]) -> asyncio.Future[Any]:
        write = Write(what, self._loop.create_future())
        if not self._gathered:
            self._loop.call_soon(self._send_gathered)
        self._gathered.append(write)
        return write.done

    def _send_gathered(self) -> None:
        """Give all gathered writes to the thread at once. Waking the thread takes longer than gathering a write."""
        if self._gathered:
            self._waiting.put(self._gathered)
            self._gathered = []

    async def stop(self) -> None:
        """Write everything that is still queued, then end the thread."""
        self._send_gathered()
        self._waiting.put(None)
        await self._ended.wait()  # not in another thread: at the end of the process, none can be started
        self._thread.join()

    def _run(self) -> None:
        late: list[Write] = []  # the file was locked; these entries are retried once at the end
        running = True
        while running:
            parts = self._next_parts()
            running = None not in parts
            writes = [write for part in parts if part is not None for write in part]
            outcomes = self._commit(writes)
            late += [
                write
                for write, outcome in zip(writes, outcomes, strict=True)
                if isinstance(write.what, Entry) and is_locked(outcome)
            ]
            if writes:
                with contextlib.suppress(RuntimeError):  # the event loop is closed, so no caller is waiting
                    self._loop.call_soon_threadsafe(_resolve, writes, outcomes)
        self._commit(late)
        if self._connection is not None:
            self._connection.close()
        with contextlib.suppress(RuntimeError):  # the event loop is closed, so no caller is waiting
            self._loop.call_soon_threadsafe(self._ended.set)

    def _next_parts(self) -> list[list[Write] | None]:
        """Wait for writes and return all queued ones. If the result contains None, the thread must end."""
        parts = [self._waiting.get()]
        with contextlib.suppress(queue.Empty):
            while True:
                parts.append(self._waiting.get_nowait())
        return parts

    def _commit(self, writes: Sequence[Write]) -> list[Any]:
        """Commit ``writes`` as one group; if that fails, commit each write separately.

        Returns one outcome per write: its result or the ``JournalError``.
        """
        try:
            return [*self._commit_when_free(writes)] if writes else []
        except Exception as error:  # any error: the thread must continue, because other writes are queued
            if len(writes) == 1 or is_locked(error):
                failure = as_journal_error(self._path, error)
                self.failure = self.failure or failure
                return [failure] * len(writes)
        return [outcome for write in writes for outcome in self._commit([write])]

    def _commit_when_free(self, writes: Sequence[Write]) -> list[Any]:
        """Commit ``writes``, and retry while another process locks the file.

        Raises the SQLite error if it has another cause, if the file stays locked for ``LOCKED_S`` seconds, or if an
        earlier write has failed.
        """
        since, warned = time.monotonic(), False
        while True:
            try:
                self._connection = self._connection or connect(self._path, readonly=False)
                return _insert(self._connection, [write.what for write in writes])
            except sqlite3.Error as error:
                if not is_locked(error) or self.failure or time.monotonic() - since > LOCKED_S:
                    raise
            if not warned:
                log.warning("the journal %s is locked by another process; waiting until it is free", self._path)
                warned = True
            time.sleep(min(0.2, journal_file.BUSY_S))


def _resolve(writes: Sequence[Write], outcomes: Sequence[Any]) -> None:
    """Give each write its outcome, so that its caller continues. Must run in the event loop."""
    for write, outcome in zip(writes, outcomes, strict=True):
        if write.done.done():
            continue  # the caller was cancelled
        if isinstance(outcome, JournalError):
            write.done.set_exception(outcome)
        else:
            write.done.set_result(outcome)


def _insert(
    connection: sqlite3.Connection, writes: Sequence[Entry | tuple[Statement, ...] | Transaction[Any]]
) -> list[Any]:
    """Commit ``writes`` in one transaction and return one result per write (see ``Write``)."""
    # Compress the replies first, so that the transaction locks the file only briefly.
    replies = [
        packed_reply(what.reply, what.request, what.attempt, what.indices) if isinstance(what, Entry) else b""
        for what in writes
    ]
    results: list[Any] = []
    with transaction(connection):
        for what, reply in zip(writes, replies, strict=True):
            if isinstance(what, Entry):
                results.append(_insert_entry(connection, what, reply))
            elif isinstance(what, tuple):
                for statement, values in what:
                    connection.execute(statement, values)
                results.append(True)
            else:
                results.append(what(connection))
    return results


def _insert_entry(connection: sqlite3.Connection, entry: Entry, reply: bytes) -> bool:
    connection.execute(
        "INSERT OR IGNORE INTO requests VALUES (?, ?, ?)",
        (entry.request, _encodable(entry.provider), compressed(entry.body)),
    )
    usage, request_id, model = entry.usage, _encodable(entry.request_id), _encodable(entry.model)
    call = connection.execute(
        "INSERT INTO calls (request, attempt, request_id, seconds, model, answers, usd, prompt_tokens, "
        "completion_tokens, mode, at, reply) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(entry.request, entry.attempt, request_id, entry.seconds, model, len(entry.indices)),
            *(entry.usd, _storable(usage.prompt), _storable(usage.completion), entry.mode, entry.at, reply),
        ),
    ).lastrowid
    added = connection.executemany(
        "INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?)",
        [(entry.request, entry.attempt, index, call, choice) for choice, index in enumerate(entry.indices)],
    ).rowcount
    return added == len(entry.indices)


def _encodable(text: str) -> str:
    """Replace lone surrogates in ``text`` by escapes, because SQLite refuses surrogates.

    Response headers with bytes outside UTF-8 contain surrogates after decoding.
    """
    return text.encode("utf-8", "backslashreplace").decode()


def _storable(tokens: float) -> int:
    """Convert ``tokens`` to an integer from 0 to ``MOST_TOKENS``, and NaN to 0. A service may report any number."""
    return int(min(max(tokens, 0), MOST_TOKENS)) if tokens == tokens else 0
