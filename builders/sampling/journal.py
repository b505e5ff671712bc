"""The journal: every answer that was paid for, in one SQLite file, on disk before it is returned.

    requests   what was asked: provider identity and request, once
    calls      what came back: the service's reply as it came, so that a better parser later costs nothing
    answers    (request, attempt, index) -> choice number so-and-so of a call

The key of an answer is (hash of provider identity and whole request, attempt, sample index). **Resume** asks for the
same keys, **widening** n for higher indices, **regenerating** for a higher attempt. Writes are committed by a thread of
their own, all that wait together in one transaction (group commit); SQLite's WAL lets others read and write the
file meanwhile, and loses nothing that was committed, whatever kills the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import queue
import sqlite3
import struct
import threading
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from bestofn.builders.errors import JournalError
from bestofn.builders.records import Request, Sampling, Usage

APPLICATION_ID = 0x62_6F_6E_31  # "bon1": tells our files from other SQLite files
FORMAT = 1
BUSY_S = 30.0  # one try; what is paid for is tried again
LOCKED_S = 3600.0  # so long another process may hold the file before the run stops

log = logging.getLogger(__name__)

SCHEMA = """
CREATE TABLE requests (
    id BLOB PRIMARY KEY, provider TEXT NOT NULL, body BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE calls (
    id INTEGER PRIMARY KEY, request BLOB NOT NULL, attempt INTEGER NOT NULL,
    request_id TEXT NOT NULL, seconds REAL NOT NULL, model TEXT NOT NULL, answers INTEGER NOT NULL, usd REAL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, mode TEXT NOT NULL, at REAL NOT NULL,
    reply BLOB NOT NULL -- last: the columns before it are read without it
);
CREATE TABLE answers (
    request BLOB NOT NULL, attempt INTEGER NOT NULL, number INTEGER NOT NULL,
    call INTEGER NOT NULL REFERENCES calls (id), choice INTEGER NOT NULL,
    PRIMARY KEY (request, attempt, number)
) WITHOUT ROWID;
CREATE TABLE batches (
    id TEXT PRIMARY KEY, provider TEXT NOT NULL, state TEXT NOT NULL, parts BLOB NOT NULL, at REAL NOT NULL
);
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One reply and the sample indices that its choices answer."""

    request: bytes  # see ``request_key``
    provider: str
    body: bytes  # the request as JSON
    attempt: int
    indices: tuple[int, ...]  # index of choice 0, 1, …
    reply: bytes
    request_id: str = ""
    seconds: float = 0.0
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    usd: float | None = None
    mode: str = "online"


@dataclass(frozen=True, slots=True)
class Kept:
    """Where an answer lies: choice number ``choice`` of a reply."""

    call: int
    choice: int
    reply: bytes
    request_id: str
    seconds: float
    answers: int
    usd: float | None  # for all answers of the reply
    mode: str


class Journal:
    """The file at ``path``, made when it is not there. Several processes may hold it open.

    Raises ``JournalError`` for a file that is torn, foreign, or cannot be written; ``readonly`` never writes.
    """

    def __init__(self, path: Path, *, readonly: bool = False) -> None:
        self.path = Path(path)
        self.readonly = readonly
        self.flights: dict[tuple[bytes, int, int], Any] = {}  # what is under way, by key: one call for one key
        self._waiting: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._writing: sqlite3.Connection | None = None  # the writing thread's own
        self._broken: JournalError | None = None

    def open(self) -> Journal:
        """Open for reading, and make the file if need be."""
        with self._told():
            if not self.readonly:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            _refuse_foreign(self.path)
            self._reader = self._connect()
        return self

    def close(self) -> None:
        self._reader.close()

    async def __aenter__(self) -> Journal:
        self.open()
        self._loop = asyncio.get_running_loop()
        self._writer = threading.Thread(target=self._write_groups, name="journal", daemon=True)
        self._writer.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._waiting.put(None)
        await asyncio.to_thread(self._writer.join)
        self.close()

    def find(self, request: bytes, attempt: int, indices: Sequence[int]) -> dict[int, Kept]:
        """Index -> where its answer lies, for those of ``indices`` that are there."""
        with self._told():
            rows = self._reader.execute(
                "SELECT number, call, choice, reply, request_id, seconds, answers, usd, mode FROM answers "
                "JOIN calls ON calls.id = answers.call WHERE answers.request = ? AND answers.attempt = ?",
                (request, attempt),
            ).fetchall()
        wanted = set(indices)
        return {
            number: Kept(call, choice, zlib.decompress(reply), *rest)
            for number, call, choice, reply, *rest in rows
            if number in wanted
        }

    def check(self) -> None:
        """Raise ``JournalError`` when nothing more can be kept, so that nothing more is asked for."""
        if self._broken is not None:
            raise self._broken

    async def add(self, entry: Entry) -> bool:
        """Returns when ``entry`` is on disk: whether all its answers are new. One that is there already stays.

        It is paid for, so it is tried even when another one could not be kept.
        """
        write = _Write(entry, self._loop.create_future())
        self._waiting.put(write)
        return await write.done

    async def note(self, statements: Sequence[tuple[str, Any]]) -> None:
        """Run SQL ``statements`` in the writing thread; returns when they are on disk."""
        self.check()
        write = _Write(tuple(statements), self._loop.create_future())
        self._waiting.put(write)
        await write.done

    async def rename(self, old: bytes, new: bytes, provider: str, body: bytes) -> bool:
        """Let what is kept under the key ``old`` answer the request ``new`` alone; whether there is anything."""
        if not self.rows("SELECT 1 FROM answers WHERE request = ? LIMIT 1", (old,)):
            return False
        await self.note(
            [
                ("INSERT OR IGNORE INTO requests VALUES (?, ?, ?)", (new, provider, zlib.compress(body, 1))),
                ("UPDATE calls SET request = ? WHERE id IN (SELECT call FROM answers WHERE request = ?)", (new, old)),
                ("UPDATE OR IGNORE answers SET request = ? WHERE request = ?", (new, old)),
            ]
        )
        return True

    def spent_usd(self) -> float:
        """Dollars paid for everything that the journal holds."""
        with self._told():
            return self._reader.execute("SELECT coalesce(sum(usd), 0.0) FROM calls").fetchone()[0]

    def rows(self, query: str, values: Any = ()) -> list[tuple[Any, ...]]:
        """The rows of an SQL ``query`` over the tables above."""
        with self._told():
            return self._reader.execute(query, values).fetchall()

    def stream(self, query: str, values: Any = ()) -> Iterator[tuple[Any, ...]]:
        """The same, one row at a time."""
        with self._told():
            yield from self._reader.execute(query, values)

    def change(self, statements: Sequence[tuple[str, Any]]) -> None:
        """Run SQL ``statements`` in one transaction, and give freed space back."""
        with self._told():
            with transaction(self._reader):
                for statement, values in statements:
                    self._reader.execute(statement, values)
            self._reader.execute("VACUUM")

    # --- the writing thread ------------------------------------------------------------------------------------------

    def _write_groups(self) -> None:
        late: list[_Write] = []  # given up because the file was locked: a last try when the journal closes
        running = True
        while running:
            group = [self._waiting.get()]
            with contextlib.suppress(queue.Empty):
                while True:
                    group.append(self._waiting.get_nowait())
            running = None not in group
            writes = [write for write in group if write is not None]
            outcomes = self._written(writes)
            paid = [(write, error) for write, error in zip(writes, outcomes, strict=True) if type(write.what) is Entry]
            late += [write for write, error in paid if _is_locked(error)]
            if writes:
                with contextlib.suppress(RuntimeError):  # the event loop is closed: nobody waits, and the rest is kept
                    self._loop.call_soon_threadsafe(_settle, writes, outcomes)
        self._written(late)
        if self._writing is not None:
            self._writing.close()

    def _written(self, writes: Sequence[_Write]) -> list[bool | JournalError]:
        """What became of each of ``writes``. One that cannot be kept takes no other with it."""
        try:
            return [*self._write_when_free(writes)] if writes else []
        except Exception as error:  # whatever it is, the thread goes on: others wait for it
            if len(writes) == 1 or _is_locked(error):
                told = _as_told(self.path, error)
                self._broken = self._broken or told
                return [told] * len(writes)
        return [outcome for write in writes for outcome in self._written([write])]

    def _write_when_free(self, writes: Sequence[_Write]) -> list[bool]:
        """Commit ``writes``, once no other process holds the file."""
        since, told = time.monotonic(), False
        while True:
            try:
                self._writing = self._writing or self._connect()
                return _write(self._writing, [write.what for write in writes])
            except sqlite3.Error as error:
                if not _is_locked(error) or self._broken or time.monotonic() - since > LOCKED_S:
                    raise
            if not told:
                log.warning("the journal %s is locked by another process; what comes waits until it is free", self.path)
                told = True
            time.sleep(min(0.2, BUSY_S))

    def _connect(self) -> sqlite3.Connection:
        uri = f"{self.path.resolve().as_uri()}?mode={'ro' if self.readonly else 'rwc'}"
        connection = sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        if not self.readonly:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")  # a commit is on disk, even if the power goes
        _prepare(connection, self.path, self.readonly)
        return connection

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Turn what SQLite and the system raise into a ``JournalError`` with its remedy."""
        try:
            yield
        except (sqlite3.Error, OSError, zlib.error) as error:
            raise _as_told(self.path, error) from error


@dataclass(slots=True)
class _Write:
    what: Entry | tuple[tuple[str, Any], ...]
    done: asyncio.Future[bool]


def request_body(request: Request, *, ordered: bool = True) -> bytes:
    """``request`` as canonical JSON; what has its default value is left out, so that new fields change no key.

    A structured answer is written in the order of the schema's properties, so that order is told where it is not the
    alphabet's; ``ordered`` False leaves it out, as journals did before.
    """
    sampling = {
        field.name: value
        for field in fields(Sampling)
        if (value := getattr(request.sampling, field.name)) != getattr(_PLAIN, field.name)
    }
    body: dict[str, Any] = {"messages": request.messages, "sampling": sampling}
    if request.tools:
        body["tools"] = request.tools
    if request.schema is not None:
        body["schema"] = request.schema
        orders = list(_property_orders(request.schema))
        if ordered and any(names != sorted(names) for names in orders):
            body["property_order"] = orders
    if request.tool_choice != "auto":
        body["tool_choice"] = request.tool_choice
    return json.dumps(body, sort_keys=True, separators=(",", ":"), default=_plain).encode()


def _property_orders(schema: Any) -> Iterator[list[str]]:
    """The names of each ``properties`` within ``schema``, in their order; where they stand does not tell."""
    if isinstance(schema, Mapping):
        for key in sorted(schema):
            if key == "properties" and isinstance(schema[key], Mapping):
                yield list(schema[key])
            yield from _property_orders(schema[key])
    elif isinstance(schema, Sequence) and not isinstance(schema, str):
        for part in schema:
            yield from _property_orders(part)


def request_key(identity: str, body: bytes) -> bytes:
    """The name of a request to one provider, 16 bytes."""
    return hashlib.blake2b(identity.encode() + b"\0" + body, digest_size=16).digest()


_PLAIN = Sampling()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Iterable):
        return list(value)
    raise TypeError(f"a request holds {value!r} ({type(value).__name__}); expected plain JSON data")


def _write(connection: sqlite3.Connection, writes: Sequence[Entry | tuple[tuple[str, Any], ...]]) -> list[bool]:
    """Commit ``writes`` in one transaction; for each entry, whether all its answers are new."""
    now = time.time()
    packed = [zlib.compress(what.reply, 1) if isinstance(what, Entry) else b"" for what in writes]  # before the lock
    new = []
    with transaction(connection):
        for what, reply in zip(writes, packed, strict=True):
            if isinstance(what, Entry):
                new.append(_write_entry(connection, what, reply, now))
            else:
                for statement, values in what:
                    connection.execute(statement, values)
                new.append(True)
    return new


def _write_entry(connection: sqlite3.Connection, entry: Entry, reply: bytes, now: float) -> bool:
    connection.execute(
        "INSERT OR IGNORE INTO requests VALUES (?, ?, ?)",
        (entry.request, _clean(entry.provider), zlib.compress(entry.body, 1)),
    )
    usage, request_id, model = entry.usage, _clean(entry.request_id), _clean(entry.model)
    call = connection.execute(
        "INSERT INTO calls (request, attempt, request_id, seconds, model, answers, usd, prompt_tokens, "
        "completion_tokens, mode, at, reply) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(entry.request, entry.attempt, request_id, entry.seconds, model, len(entry.indices)),
            *(entry.usd, _whole(usage.prompt), _whole(usage.completion), entry.mode, now, reply),
        ),
    ).lastrowid
    added = connection.executemany(
        "INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?)",
        [(entry.request, entry.attempt, index, call, choice) for choice, index in enumerate(entry.indices)],
    ).rowcount
    return added == len(entry.indices)


def _clean(text: str) -> str:
    """``text`` as SQLite takes it: a service may put bytes into a header that are no UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


def _whole(tokens: float) -> int:
    """``tokens`` as SQLite takes it: a service may tell any number."""
    return int(min(max(tokens, 0), 1 << 60)) if tokens == tokens else 0


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _settle(writes: Sequence[_Write], outcomes: Sequence[bool | JournalError]) -> None:
    for write, outcome in zip(writes, outcomes, strict=True):
        if write.done.done():
            continue  # whoever waited went away
        if isinstance(outcome, JournalError):
            write.done.set_exception(outcome)
        else:
            write.done.set_result(outcome)


def _prepare(connection: sqlite3.Connection, path: Path, readonly: bool) -> None:
    """Make the tables in a new file; refuse a file of another make."""
    if not readonly:
        connection.execute("BEGIN IMMEDIATE")
    try:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        if empty and not readonly and application == 0:
            for statement in SCHEMA.split(";\n"):
                if statement.strip():
                    connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")
        elif application != APPLICATION_ID:
            raise JournalError(
                f"{path} is an SQLite file, but no journal of bestofn. Set journal=… to another path; "
                "nothing was changed in it."
            )
        elif version != FORMAT:
            raise JournalError(
                f"{path} is a journal of format {version}; this bestofn reads format {FORMAT}. "
                "Use the bestofn that wrote it, or set journal=… to a new path."
            )
    except BaseException:
        if not readonly:
            connection.execute("ROLLBACK")
        raise
    if not readonly:
        connection.execute("COMMIT")


def _refuse_foreign(path: Path) -> None:
    """Raise ``JournalError`` for a file that is no SQLite file, or was cut short."""
    if not path.exists() or path.stat().st_size == 0:
        return
    with path.open("rb") as file:
        head = file.read(100)
    if not head.startswith(b"SQLite format 3\0") or len(head) < 100:
        raise JournalError(
            f"{path} is not a journal: it begins with {head[:16]!r}. Set journal=… to another path; "
            "the file was left as it is."
        )
    page_size = struct.unpack(">H", head[16:18])[0]
    pages = struct.unpack(">I", head[28:32])[0]
    expected = pages * (65536 if page_size == 1 else page_size)
    if path.stat().st_size < expected and not path.with_name(path.name + "-wal").exists():
        raise JournalError(
            f"{path} is torn: it has {path.stat().st_size:,} bytes, and its header tells {expected:,}. Restore it from "
            "a copy, or move it away and set journal=… to a new path: what it held will be asked for again."
        )


def _is_locked(error: object) -> bool:
    """Whether another process holds the file; also for the ``JournalError`` that says so."""
    told = error.__cause__ if isinstance(error, JournalError) else error
    return getattr(told, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _as_told(path: Path, error: Exception) -> JournalError:
    if isinstance(error, JournalError):
        return error
    told = JournalError(_explain(path, error))
    told.__cause__ = error
    return told


def _explain(path: Path, error: Exception) -> str:
    text = str(error)
    if "disk is full" in text or "No space" in text or "disk I/O" in text:
        return (
            f"the journal {path} cannot be written: {text}. Every answer kept so far is safe. "
            "Make room, and run the same command again."
        )
    if "readonly" in text or "unable to open" in text or isinstance(error, OSError):
        return f"the journal {path} cannot be opened for writing: {text}. Set journal=… or out=… to a folder of yours."
    if "locked" in text or "busy" in text:
        return f"the journal {path} stays locked by another process. End it, or set journal=… anew."
    if not isinstance(error, (sqlite3.Error, zlib.error)):
        return (
            f"the journal {path} could not keep an answer ({type(error).__name__}: {text}). Every answer kept so far "
            "is safe. Please report this; the same command goes on from here."
        )
    return (
        f"the journal {path} is torn: {text}. Restore it from a copy, or move it away and set journal=… to a new path: "
        "what it held will be asked for again."
    )
