"""The journal: one SQLite file with every paid reply. A reply is on disk before the sampler returns it.

    requests   each request once, with the identity of its provider
    calls      the unparsed replies of the service, so that a later version can parse them again for free
    answers    (request, attempt, index) -> the call, and the choice in its reply
    refusals   the samples that the service always refuses, because of their content or their length
    seen_refusals   the samples that the service has refused for another reason; the next run requests them again
    batches    the batch jobs of services (``builders.sampling.batch_rows``)
    owners, claims   the processes that use the journal, and what they work on (``builders.sampling.claims``)

The key of an answer is (hash of the provider identity and the whole request, attempt, sample index). A resumed run
looks up the same keys, a larger n looks up higher indices, and regeneration looks up a higher attempt.

A thread commits all waiting writes in one transaction (``builders.sampling.journal_writer``). SQLite's WAL mode lets
other processes read and write the file at the same time. A killed process loses no committed reply.

Used by ``builders.run.pipeline`` and by ``bestofn journal``.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bestofn.builders.errors import PermanentRefusal
from bestofn.builders.redaction.secrets import redacted_text
from bestofn.builders.sampling.claims import Claims
from bestofn.builders.sampling.in_flight import InFlightRequests
from bestofn.builders.sampling.journal_file import (
    connect,
    journal_errors,
    record_errors,
    refuse_foreign,
    transaction,
    unpacked_reply,
)
from bestofn.builders.sampling.journal_writer import Entry, JournalWriter, Statement

STORED_BITS = 1 << 26  # requests with equal bits are looked up in vain: 1 % of them after 700,000 requests
Values = Sequence[object] | Mapping[str, object]


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A stored answer: one choice in a stored reply.

    ``reply`` is the unparsed reply, ``call`` its id in the table ``calls``, and ``choice`` the number of the choice in
    the reply, from 0. ``answers`` is the number of choices in the reply, and ``usd`` is the total cost of these
    choices.
    """

    call: int
    choice: int
    reply: bytes
    request_id: str
    seconds: float
    answers: int
    usd: float | None
    mode: str
    at: float  # when the reply was stored, in seconds since 1970


class Journal:
    """The journal at ``path``. Several processes may open it at the same time.

    Methods raise ``JournalError`` if the file is damaged, belongs to another program, or is not writable. A
    ``readonly`` journal never writes. Writing methods work only inside ``async with``.

    All samplers of a process that use this journal share three attributes. ``in_flight`` contains the requests in
    flight. ``claims`` contains the samples and batch jobs that this process works on, so that other processes wait for
    them. ``claims`` exists only inside ``async with``. ``claimed_batches`` contains the ids and marks of the batch jobs
    that a sampler waits for.
    """

    claims: Claims

    def __init__(self, path: Path, *, readonly: bool = False) -> None:
        self.path = Path(path)
        self.readonly = readonly
        self.in_flight = InFlightRequests()
        self.claimed_batches: set[str] = set()
        self._spent_usd = 0.0  # by the calls up to ``_last_call``
        self._last_call = 0
        self._stored: bytearray | None = None  # see ``may_have``

    def open(self) -> Journal:
        """Open the file for reading. Unless the journal is ``readonly``, create the file if it does not exist."""
        with journal_errors(self.path):
            if not self.readonly:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            refuse_foreign(self.path)
            self._reader: sqlite3.Connection = connect(self.path, readonly=self.readonly)
        return self

    def close(self) -> None:
        """Close the connection that ``open`` opened."""
        self._reader.close()

    async def __aenter__(self) -> Journal:
        self.open()
        self._writer = JournalWriter(self.path, asyncio.get_running_loop())
        self.claims = Claims(self.path, self._reader, self._writer, self)
        try:
            await self.claims.open()
            is_empty = not self.rows("SELECT 1 FROM calls UNION ALL SELECT 1 FROM refusals LIMIT 1")
        except BaseException:
            await self._stop()
            raise
        self._stored = bytearray(STORED_BITS // 8) if is_empty else None
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.claims.close()
        await self._stop()

    async def _stop(self) -> None:
        await self._writer.stop()
        self.close()

    def find(self, request: bytes, attempt: int, indices: Sequence[int]) -> dict[int, StoredAnswer]:
        """Return the stored answers by sample index. The result leaves out indices without a stored answer."""
        if not self.may_have(request):
            return {}
        with journal_errors(self.path):
            rows = self._reader.execute(
                "SELECT number, call, choice, reply, request_id, seconds, answers, usd, mode, at FROM answers "
                "JOIN calls ON calls.id = answers.call WHERE answers.request = ? AND answers.attempt = ?",
                (request, attempt),
            ).fetchall()
        needed, replies, stored = set(indices), {}, {}
        with record_errors(self.path):
            for number, call, choice, blob, request_id, seconds, answers, usd, mode, at in rows:
                if number in needed:
                    if (call, choice - number) not in replies:
                        reply = unpacked_reply(blob, request, attempt, number - choice, answers)
                        replies[call, choice - number] = reply
                    reply = replies[call, choice - number]
                    times = float(seconds), answers, usd, mode, float(at)
                    stored[number] = StoredAnswer(call, choice, reply, request_id, *times)
        return stored

    def check(self) -> None:
        """Check that the reply to a request can be stored, and update the budgets. Called before the request is sent.

        Raises ``JournalError`` if an earlier write failed, so that no further request is sent and paid for.
        """
        if self._writer.failure is not None:
            raise self._writer.failure
        if self.claims.is_shared:
            self.claims.update_budgets()

    async def add(self, entry: Entry) -> bool:
        """Write ``entry``, wait until it is on disk, and return whether all its answers were new.

        Answers that were stored earlier are not replaced. The reply is paid for, so it is written even if an earlier
        write failed.
        """
        self._note_stored(entry.request)
        return await self._writer.write(entry)

    def refusals(self, request: bytes, attempt: int, indices: Sequence[int]) -> dict[int, PermanentRefusal]:
        """Return the stored permanent refusals by sample index. The result leaves out samples without a refusal."""
        if not self.may_have(request):
            return {}
        query = "SELECT number, message FROM refusals WHERE request = ? AND attempt = ?"
        refused = dict(self.rows(query, (request, attempt)))
        return {index: PermanentRefusal(refused[index]) for index in indices if index in refused}

    async def add_refusals(
        self, request: bytes, attempt: int, indices: Sequence[int], provider: str, error: PermanentRefusal
    ) -> None:
        """Store the permanent refusal ``error`` of these samples, so that no later run requests them again.

        ``indices`` are the indices of the samples, and ``provider`` is the identity of the provider.
        """
        self._note_stored(request)
        statement = "INSERT OR REPLACE INTO refusals VALUES (?, ?, ?, ?, ?, ?)"
        message = redacted_text(str(error)).encode("utf-8", "replace").decode()  # without surrogates
        await self.note([(statement, (request, attempt, index, provider, message, time.time())) for index in indices])

    def may_have(self, request: bytes) -> bool:
        """Return whether the file may contain a row about ``request``.

        A false result saves the lookup of a new request, which takes 80 µs because each commit empties SQLite's cache.
        The result is false only if the file was empty at the start and no other process has used it since. In addition,
        this process must have stored nothing about ``request``.
        """
        if self._stored is None or self.claims.was_shared:
            return True
        place, bit = divmod(_stored_bit(request), 8)
        return bool(self._stored[place] >> bit & 1)

    def _note_stored(self, request: bytes) -> None:
        if self._stored is not None:
            place, bit = divmod(_stored_bit(request), 8)
            self._stored[place] |= 1 << bit

    def was_refused(self, request: bytes, attempt: int, index: int) -> bool:
        """Return whether the service has refused this sample before, for a reason that is not permanent."""
        query = "SELECT 1 FROM seen_refusals WHERE request = ? AND attempt = ? AND number = ?"
        return bool(self.rows(query, (request, attempt, index)))

    async def note_refused(self, request: bytes, attempt: int, indices: Sequence[int]) -> None:
        """Store that the service has refused the samples ``indices`` for a reason that is not permanent."""
        statement = "INSERT OR IGNORE INTO seen_refusals VALUES (?, ?, ?)"
        await self.note([(statement, (request, attempt, index)) for index in indices])

    async def note(self, statements: Sequence[Statement]) -> None:
        """Run SQL ``statements`` in the writing thread, and wait until the changes are on disk."""
        self.check()
        await self._writer.write(tuple(statements))

    def spent_usd(self) -> float:
        """Return the dollars paid for all replies in the journal."""
        with journal_errors(self.path):
            usd, last = self._reader.execute(
                "SELECT coalesce(sum(usd), 0.0), coalesce(max(id), 0) FROM calls WHERE id > ?", (self._last_call,)
            ).fetchone()
        self._spent_usd, self._last_call = self._spent_usd + usd, max(self._last_call, last)
        return self._spent_usd

    def paid(self) -> dict[str, float]:
        """Return the totals of the journal: ``requests``, ``completions``, ``usd``, and numbers of tokens."""
        ((requests, completions, usd, prompt, completion),) = self.rows(
            "SELECT count(*), sum(answers), sum(usd), sum(prompt_tokens), sum(completion_tokens) FROM calls"
        )
        counts = {"requests": requests, "completions": completions, "usd": usd, "prompt_tokens": prompt}
        counts |= {"completion_tokens": completion, "tokens": (prompt or 0) + (completion or 0)}
        return {name: value or 0 for name, value in counts.items()}

    def has_replies_of(self, provider: str) -> bool:
        """Return whether the journal contains a reply of the provider with the identity ``provider``."""
        answered = "EXISTS (SELECT 1 FROM answers WHERE answers.request = requests.id)"  # unlike in an unfinished batch
        return bool(self.rows(f"SELECT 1 FROM requests WHERE provider = ? AND {answered} LIMIT 1", (provider,)))

    def rows(self, query: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Return all rows of an SQL ``query``."""
        with journal_errors(self.path):
            return self._reader.execute(query, values).fetchall()

    def stream(self, query: str, values: Values = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of an SQL ``query``, one at a time."""
        with journal_errors(self.path):
            yield from self._reader.execute(query, values)

    def change(self, statements: Sequence[Statement]) -> None:
        """Run SQL ``statements`` in one transaction, then shrink the file. Works outside ``async with`` too."""
        with journal_errors(self.path):
            with transaction(self._reader):
                for statement, values in statements:
                    self._reader.execute(statement, values)
            self._reader.execute("VACUUM")


def _stored_bit(request: bytes) -> int:
    return int.from_bytes(request[:8], "big") % STORED_BITS
