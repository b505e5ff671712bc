"""Claims: the samples and batch jobs that a process works on, so that other processes with the same journal wait.

Two tables of the journal contain them (see ``builders.sampling.journal_file``):

    owners   the processes that use the journal, with a heartbeat, and the dollars that each has reserved for batch jobs
    claims   key of a sample or batch job -> the owner that works on it

While only one process uses the journal, its claims are not written: they stay in memory. A process that opens the
journal adds itself to ``owners`` and waits until each other owner has written its claims (column ``shared``). Owners
look for new owners every ``LOOK_S`` seconds. The claims of a process that has ended are deleted.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sqlite3
import struct
import time
import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from bestofn.builders.concurrency.process import Process, process_from, this_process
from bestofn.builders.errors import JournalError
from bestofn.builders.sampling.journal_file import journal_errors
from bestofn.builders.sampling.journal_writer import JournalWriter

LOOK_S = 0.25  # seconds between two looks at the other owners
BEAT_S = 5.0  # seconds between two heartbeats
STALE_S = 60.0  # an owner in another container whose heartbeat does not change for this long has ended
ANSWER_S = 60.0  # a new owner waits this long until another one has written its claims
log = logging.getLogger(__name__)
_place = struct.Struct(">qq")


def sample_key(request: bytes, attempt: int, index: int) -> bytes:
    """Return the claim key of one sample. ``request`` is the journal key of the request."""
    return request + _place.pack(attempt, index)


def batch_key(batch: str) -> bytes:
    """Return the claim key of a batch job. ``batch`` is its id or mark."""
    return b"batch:" + batch.encode()


class SharedBudget(Protocol):
    """A budget that several processes share: ``builders.sampling.cost.Ledger``."""

    usd_aside: float

    def carry(self, usd: float, usd_aside_elsewhere: float = 0.0) -> None:
        """Set ``usd``, the cost of all replies in the journal, and the dollars that other processes have reserved."""
        ...


class Spending(Protocol):
    """An object that knows the cost of all replies in the journal: ``builders.sampling.journal.Journal``."""

    def spent_usd(self) -> float:
        """Return the dollars paid for all replies in the journal."""
        ...


@dataclass(frozen=True, slots=True)
class Owner:
    """One row of the table ``owners``: a process that uses the journal.

    If ``is_shared``, the owner has written its claims and writes each new claim. ``usd_aside`` are the dollars that it
    has reserved for batch jobs.
    """

    id: str
    process: Process
    heartbeat: float
    is_shared: bool
    usd_aside: float

    @property
    def is_ready(self) -> bool:
        """Whether a new owner can start without waiting for this one."""
        return self.is_shared and self.process.is_on_this_machine


class _Heartbeat(NamedTuple):
    """The last heartbeat of another owner. ``since`` is when ``value`` was first read.

    ``changed`` is whether the heartbeat has ever changed.
    """

    value: float
    since: float
    changed: bool


class Claims:
    """The claims of this process on one open journal. ``Journal`` opens and closes this object.

    Take a key before you pay for the work. Then look into the journal again, because another process may have stored
    the result in the meantime. Release the key once the result is stored, or once the work has failed:

        mine = await journal.claims.take([batch_key(job.id)])
        ...
        journal.claims.release(mine)

    Another process that wants the same key gets it after the release, or after this process has ended. ``is_shared`` is
    True while another process uses the journal. ``was_shared`` stays True from then on.
    """

    def __init__(self, path: Path, reader: sqlite3.Connection, writer: JournalWriter, spending: Spending) -> None:
        self.is_shared = self.was_shared = False
        self._path = path
        self._reader = reader
        self._writer = writer
        self._spending = spending
        self._id = uuid.uuid4().hex
        self._held: set[bytes] = set()
        self._budgets: list[SharedBudget] = []
        self._written_aside = self._aside_elsewhere = 0.0
        self._beat_at = 0.0
        self._seen: dict[str, _Heartbeat] = {}  # of the other owners
        self._has_waited = False
        self._looked = asyncio.Event()
        self._watch: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Add this process to the owners, and wait until every other owner writes its claims.

        Raises ``JournalError`` if another owner does not answer, or if it runs on another machine. SQLite can share a
        journal only between processes of one machine.
        """
        self.is_shared = self.was_shared = await self._writer.run(partial(_register, self._id))
        self._beat_at = time.monotonic()
        try:
            await self._wait_for_owners()
        except BaseException:
            await self.close()
            raise
        self._watch = asyncio.ensure_future(self._look_repeatedly())

    async def close(self) -> None:
        """Remove this process and its claims from the journal."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        with contextlib.suppress(JournalError):  # the rows of a process that has ended are deleted by the next one
            await self._writer.run(partial(_remove, self._id))

    def watch_budget(self, budget: SharedBudget) -> None:
        """Report to ``budget``, now and after each change, the dollars that all processes have paid and reserved."""
        self._budgets.append(budget)
        if self.is_shared:
            self._aside_elsewhere = sum(owner.usd_aside for owner in self._owners())
        self.update_budgets()

    def update_budgets(self) -> None:
        """Report the cost of all replies in the journal to the budgets. Replies of other processes are included."""
        usd = self._spending.spent_usd()
        for budget in self._budgets:
            budget.carry(usd, self._aside_elsewhere)

    async def take(self, keys: Collection[bytes]) -> set[bytes]:
        """Claim ``keys``. Returns the claimed keys; the others are claimed by another process."""
        if not self.is_shared:
            self._held.update(keys)
            return set(keys)
        free = {key for key in keys if self.is_free(key)}
        if len(free) < len(keys) and not self._has_waited:
            self._has_waited = True
            log.info(
                "Another process requests samples that this process needs too. This process waits until they are in "
                "the journal %s.",
                self._path,
            )
        if not free:
            return free
        self._held |= free  # before the file is changed, because ``_share`` writes all claims that are held
        mine = await self._writer.run(partial(_take, self._id, free))
        self._held -= free - mine
        return mine

    def is_free(self, key: bytes) -> bool:
        """Return whether no other process has claimed ``key``."""
        return not self.is_shared or self._holder(key) in (None, self._id)

    def release(self, keys: Iterable[bytes]) -> None:
        """Release the claims on ``keys``; keys that are not claimed are ignored.

        The file is changed after this method has returned.
        """
        released = [key for key in keys if key in self._held]
        self._held.difference_update(released)
        if self.is_shared and released:
            self._writer.submit(partial(_release, self._id, released)).add_done_callback(_ignore_result)

    async def wait(self) -> None:
        """Wait until the other processes have been checked again. Their claims may have changed by then."""
        await self._looked.wait()

    # --- the other owners --------------------------------------------------------------------------------------------

    async def _look_repeatedly(self) -> None:
        failed = False
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self._look()
                failed = False
            except JournalError as error:
                if not failed:  # log only the first of several failures in a row
                    log.warning("The list of the other processes that use %s cannot be read now: %s", self._path, error)
                failed = True
            looked, self._looked = self._looked, asyncio.Event()
            looked.set()

    async def _look(self) -> list[Owner]:
        """Check the other owners: start or stop sharing, and return the owners that have not ended.

        Also writes the heartbeat and the reserved dollars of this process.
        """
        if time.monotonic() - self._beat_at >= BEAT_S:
            self._beat_at = time.monotonic()
            await self._writer.run(partial(_beat, self._id, self.is_shared))
        others = await self._living_owners()
        if others and not self.is_shared:
            self.is_shared = self.was_shared = True  # from now on each new claim is written
            await self._writer.run(partial(_share, self._id, tuple(self._held)))
        elif self.is_shared and not others and await self._writer.run(partial(_stop_sharing, self._id)):
            self.is_shared = False
        if self.is_shared:
            self._aside_elsewhere = sum(owner.usd_aside for owner in others)
            self.update_budgets()
            await self._write_aside()
        return others

    async def _living_owners(self) -> list[Owner]:
        """Return the other owners that have not ended. Delete the others together with their claims."""
        others = self._owners()
        ended = [owner for owner in others if self._has_ended(owner)]
        for owner in ended:
            log.warning("%s used %s and has ended. Its claims are released.", owner.process, self._path)
            await self._writer.run(partial(_remove, owner.id))
        return [owner for owner in others if owner not in ended]

    def _has_ended(self, owner: Owner) -> bool:
        alive = owner.process.is_alive()
        seen = self._heartbeat(owner)
        return time.monotonic() - seen.since >= STALE_S if alive is None else not alive

    def _heartbeat(self, owner: Owner) -> _Heartbeat:
        seen = self._seen.get(owner.id)
        if seen is None or seen.value != owner.heartbeat:
            seen = self._seen[owner.id] = _Heartbeat(owner.heartbeat, time.monotonic(), changed=seen is not None)
        return seen

    async def _wait_for_owners(self) -> None:
        """Wait until each other owner writes its claims; see ``open``."""
        started, warned = time.monotonic(), False
        while waiting := [owner for owner in await self._look() if not owner.is_ready]:
            for owner in waiting:
                if not owner.process.is_on_this_machine and self._heartbeat(owner).changed:
                    raise JournalError(_foreign(self._path, owner))
            waited = time.monotonic() - started
            if waited > ANSWER_S and any(owner.process.is_alive() for owner in waiting):
                raise JournalError(_silent(self._path, waiting))
            if waited > 2 * BEAT_S and not warned:
                warned = True
                names = ", ".join(str(owner.process) for owner in waiting)
                log.warning(
                    "The journal %s is also used by %s. Waiting until each of these processes answers or ends.",
                    self._path,
                    names,
                )
            await asyncio.sleep(LOOK_S / 5)

    def _owners(self) -> list[Owner]:
        with journal_errors(self._path):
            rows = self._reader.execute(
                "SELECT id, process, heartbeat, shared, usd_aside FROM owners WHERE id != ?", (self._id,)
            ).fetchall()
        owners = ((row, _process(row[1])) for row in rows)
        return [Owner(row[0], process, row[2], bool(row[3]), row[4]) for row, process in owners if process is not None]

    def _holder(self, key: bytes) -> str | None:
        with journal_errors(self._path):
            row = self._reader.execute("SELECT owner FROM claims WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    async def _write_aside(self) -> None:
        aside = sum(budget.usd_aside for budget in self._budgets)
        if aside != self._written_aside:
            await self._writer.run(partial(_set_aside, self._id, aside))
            self._written_aside = aside


# --- the transactions; each runs in the thread of the journal's writer ------------------------------------------------


def _register(owner: str, connection: sqlite3.Connection) -> bool:
    """Add ``owner`` to the journal, and delete the owners that have certainly ended.

    Returns whether there are other owners. If there are, the new owner writes its claims from the start.
    """
    is_shared = False
    for other, process in connection.execute("SELECT id, process FROM owners").fetchall():
        known = _process(process)
        if known is None or known.is_alive() is False:
            _remove(other, connection)
        else:
            is_shared = True
    _beat(owner, is_shared, connection)
    return is_shared


def _process(text: str) -> Process | None:
    """Return the process in a row of the table ``owners``; None if the row is damaged."""
    try:
        return process_from(json.loads(text))
    except (ValueError, KeyError, TypeError):
        return None


def _remove(owner: str, connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM claims WHERE owner = ?", (owner,))
    connection.execute("DELETE FROM owners WHERE id = ?", (owner,))


def _beat(owner: str, is_shared: bool, connection: sqlite3.Connection) -> None:
    """Write the heartbeat of ``owner``. Add the owner if another process has deleted it by mistake."""
    process, now = json.dumps(this_process().as_json()), time.time()
    connection.execute(
        "INSERT INTO owners VALUES (?, ?, ?, ?, 0.0) ON CONFLICT (id) DO UPDATE SET heartbeat = excluded.heartbeat",
        (owner, process, now, is_shared),
    )


def _set_aside(owner: str, usd: float, connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE owners SET usd_aside = ? WHERE id = ?", (usd, owner))


def _share(owner: str, held: Collection[bytes], connection: sqlite3.Connection) -> None:
    """Write all claims that ``owner`` has held in memory, and record that it writes its claims from now on."""
    connection.execute("DELETE FROM claims WHERE owner = ?", (owner,))
    connection.executemany("INSERT OR IGNORE INTO claims VALUES (?, ?)", [(key, owner) for key in held])
    connection.execute("UPDATE owners SET shared = 1 WHERE id = ?", (owner,))


def _stop_sharing(owner: str, connection: sqlite3.Connection) -> bool:
    """Stop writing claims if ``owner`` is the only owner. Returns whether it is the only one."""
    if connection.execute("SELECT 1 FROM owners WHERE id != ?", (owner,)).fetchone():
        return False
    connection.execute("UPDATE owners SET shared = 0 WHERE id = ?", (owner,))
    connection.execute("DELETE FROM claims")
    return True


def _take(owner: str, keys: Collection[bytes], connection: sqlite3.Connection) -> set[bytes]:
    connection.executemany("INSERT OR IGNORE INTO claims VALUES (?, ?)", [(key, owner) for key in keys])
    query = "SELECT 1 FROM claims WHERE key = ? AND owner = ?"
    return {key for key in keys if connection.execute(query, (key, owner)).fetchone()}


def _release(owner: str, keys: Collection[bytes], connection: sqlite3.Connection) -> None:
    connection.executemany("DELETE FROM claims WHERE key = ? AND owner = ?", [(key, owner) for key in keys])


def _ignore_result(future: asyncio.Future[None]) -> None:
    if not future.cancelled():
        future.exception()  # so that asyncio does not log it: the claims end with this process


def _foreign(path: Path, owner: Owner) -> str:
    return (
        f"{path} is in use by {owner.process}, which is another machine. SQLite can share a journal only between "
        "processes of one machine. Set journal=… to one file per machine, or wait until that process has ended."
    )


def _silent(path: Path, owners: Iterable[Owner]) -> str:
    names = ", ".join(str(owner.process) for owner in owners)
    return (
        f"{path} is in use by {names}, which does not answer and may be stopped. End or continue it, or set journal=… "
        "to another file. No request was sent, so that no sample is paid for twice."
    )
