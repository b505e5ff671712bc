"""The SQLite file of a journal: its tables, the checks before the file is used, and error messages with a remedy.

Used by ``builders.sampling.journal`` and by its writing thread, ``builders.sampling.journal_writer``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from bestofn.builders.errors import JournalError

APPLICATION_ID = 0x62_6F_6E_31  # "bon1": distinguishes journals from other SQLite files
FORMAT = 1
SEAL_BYTES = 8  # length of the checksum after each compressed reply
MOST_SAMPLES = 1024  # sample indices that are tried for a reply whose answers are lost
BUSY_S = 30.0  # seconds that SQLite waits for a locked file in each attempt
SMALL_BITS = 13  # zlib's window for a text of at most 2**13 bytes; see ``compressed``
SMALL_MEMORY = 6  # zlib's ``memLevel`` for such a text

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

LATER_TABLES = """
CREATE TABLE IF NOT EXISTS refusals (
    request BLOB NOT NULL, attempt INTEGER NOT NULL, number INTEGER NOT NULL, provider TEXT NOT NULL,
    message TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (request, attempt, number)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS seen_refusals (
    request BLOB NOT NULL, attempt INTEGER NOT NULL, number INTEGER NOT NULL,
    PRIMARY KEY (request, attempt, number)
) WITHOUT ROWID;
"""
"""Created in each journal that is opened for writing, because journals of earlier versions do not have these tables."""


REMEDY = (
    "`bestofn doctor RUN` keeps every reply that can be read, and the next run requests only the others again. "
    "Or restore the file from a copy."
)


def connect(path: Path, *, readonly: bool) -> sqlite3.Connection:
    """Open an SQLite connection to the journal at ``path``.

    Creates the tables in a new or empty file, unless ``readonly``. Raises ``JournalError`` if the file is an SQLite
    file but not a journal of this format.
    """
    immutable = "&immutable=1" if readonly and _cannot_change(path) else ""
    uri = f"{path.resolve().as_uri()}?mode={'ro' if readonly else 'rwc'}{immutable}"
    connection = sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    if not readonly:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")  # a commit is on disk even after a power failure
    _prepare(connection, path, readonly)
    return connection


def _cannot_change(path: Path) -> bool:
    """Return whether no process writes the journal ``path``, and SQLite could not create its files next to it.

    SQLite opens such a journal only as an immutable file.
    """
    log, shared = (path.with_name(path.name + ending) for ending in ("-wal", "-shm"))
    unwritten = log.exists() and log.stat().st_size > 0
    return not (shared.exists() or unwritten or os.access(path.parent, os.W_OK))


def compressed(text: bytes) -> bytes:
    """Compress ``text`` with zlib.

    A small window is enough for a short text. With the default window, zlib requests 256 KB of memory from the system
    for each text, which takes ten times as long as the compression.
    """
    if len(text) > 1 << SMALL_BITS:
        return zlib.compress(text, 1)
    packer = zlib.compressobj(1, zlib.DEFLATED, SMALL_BITS, SMALL_MEMORY)
    return packer.compress(text) + packer.flush()


def packed_reply(reply: bytes, request: bytes, attempt: int, indices: Sequence[int]) -> bytes:
    """Compress ``reply``, and append a checksum that depends on the compressed reply and on ``indices``.

    ``indices`` are the sample indices of the choices in the reply. If they are empty or not consecutive, there is no
    checksum.
    """
    packed = compressed(reply)
    if not indices or indices[-1] - indices[0] != len(indices) - 1:
        return packed
    return packed + _seal(packed, request, attempt, indices[0], len(indices))


def unpacked_reply(blob: bytes, request: bytes, attempt: int, first: int, count: int) -> bytes:
    """Return the reply in ``blob``. It has ``count`` choices, whose sample indices start at ``first``.

    Raises ``zlib.error`` if the reply is damaged or belongs to other samples.
    """
    unpacker = zlib.decompressobj()
    reply, seal = unpacker.decompress(blob), unpacker.unused_data
    if not unpacker.eof or seal not in (b"", _seal(blob[: len(blob) - len(seal)], request, attempt, first, count)):
        raise zlib.error("a stored reply does not match its checksum")
    return reply


def is_intact(blob: bytes, request: bytes, attempt: int, first: int, count: int) -> bool:
    """Return whether ``unpacked_reply`` can read ``blob``. A reply with the right checksum is not decompressed."""
    if blob[-SEAL_BYTES:] == _seal(blob[:-SEAL_BYTES], request, attempt, first, count):
        return True
    try:
        unpacked_reply(blob, request, attempt, first, count)
    except zlib.error:
        return False
    return True


def resealed(blob: bytes, old: bytes, new: bytes, attempt: int, indices: Sequence[int]) -> bytes:
    """Return a stored reply of the request ``old`` with the checksum for the request ``new``.

    ``indices`` are the sample indices of the reply; if they are empty, the result has no checksum. Raises
    ``zlib.error`` if the reply is damaged or belongs to other samples.
    """
    if indices:
        return packed_reply(unpacked_reply(blob, old, attempt, indices[0], len(indices)), new, attempt, indices)
    return packed_reply(zlib.decompressobj().decompress(blob), new, attempt, ())


def first_sample(blob: bytes, request: bytes, attempt: int, count: int) -> int | None:
    """Return the first sample index of a stored reply; None if the checksum matches no index."""
    packed, seal = blob[:-SEAL_BYTES], blob[-SEAL_BYTES:]
    return next((first for first in range(MOST_SAMPLES) if seal == _seal(packed, request, attempt, first, count)), None)


def _seal(packed: bytes, request: bytes, attempt: int, first: int, count: int) -> bytes:
    digest = hashlib.blake2b(packed, digest_size=SEAL_BYTES, key=request[:64])
    digest.update(b"%d %d %d" % (attempt, first, count))
    return digest.digest()


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit all SQL statements of the block together; roll them all back if the block raises."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


@contextlib.contextmanager
def journal_errors(path: Path) -> Iterator[None]:
    """Convert errors of SQLite, zlib and the file system in the block to a ``JournalError`` that suggests a remedy."""
    try:
        yield
    except (sqlite3.Error, OSError, zlib.error, UnicodeDecodeError) as error:  # a damaged schema is no UTF-8
        raise as_journal_error(path, error) from error


@contextlib.contextmanager
def record_errors(path: Path) -> Iterator[None]:
    """Convert errors as ``journal_errors`` does, and also errors about values of a wrong type.

    Use it for blocks that decode records. A value of a wrong type means that the journal is damaged.
    """
    with journal_errors(path):
        try:
            yield
        except (TypeError, ValueError) as error:
            raise sqlite3.DatabaseError(f"a record has a wrong type ({error})") from error


def as_journal_error(path: Path, error: Exception) -> JournalError:
    """Convert ``error`` to a ``JournalError`` that names the cause and a remedy."""
    if isinstance(error, JournalError):
        return error
    explained = JournalError(_explain(path, error))
    explained.__cause__ = error
    return explained


def is_locked(error: object) -> bool:
    """Return whether ``error`` means that another process locks the file.

    For a ``JournalError``, its cause is examined.
    """
    cause = error.__cause__ if isinstance(error, JournalError) else error
    return getattr(cause, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def refuse_foreign(path: Path) -> None:
    """Raise ``JournalError`` if the file at ``path`` is not an SQLite file or is truncated.

    A missing or empty file is accepted.
    """
    if not path.exists() or path.stat().st_size == 0:
        return
    with path.open("rb") as file:
        head = file.read(100)
    if not head.startswith(b"SQLite format 3\0") or len(head) < 100:
        raise JournalError(
            f"{path} is not a journal: it begins with {head[:16]!r}. Set journal=… to another path; "
            "the file was not changed."
        )
    page_size = struct.unpack(">H", head[16:18])[0]
    pages = struct.unpack(">I", head[28:32])[0]
    expected = pages * (65536 if page_size == 1 else page_size)
    if path.stat().st_size < expected and not path.with_name(path.name + "-wal").exists():
        raise JournalError(
            f"{path} is damaged: it has {path.stat().st_size:,} bytes, but its header says {expected:,}. {REMEDY}"
        )


def _prepare(connection: sqlite3.Connection, path: Path, readonly: bool) -> None:
    """Create the missing tables, unless ``readonly``.

    Raises ``JournalError`` if the file has another format, or if another program wrote it.
    """
    if not readonly:
        connection.execute("BEGIN IMMEDIATE")
    try:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        if empty and not readonly and application == 0:
            _create_tables(connection, SCHEMA)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")
        elif application != APPLICATION_ID:
            raise JournalError(
                f"{path} is an SQLite file, but not a journal of bestofn. Set journal=… to another path; "
                "the file was not changed."
            )
        elif version != FORMAT:
            raise JournalError(
                f"{path} is a journal of format {version}; this version of bestofn reads format {FORMAT}. "
                "Use the version of bestofn that wrote it, or set journal=… to a new path."
            )
        if not readonly:
            _create_tables(connection, LATER_TABLES)
    except BaseException:
        if not readonly:
            connection.execute("ROLLBACK")
        raise
    if not readonly:
        connection.execute("COMMIT")


def _create_tables(connection: sqlite3.Connection, schema: str) -> None:
    for statement in schema.split(";\n"):
        if statement.strip():
            connection.execute(statement)


def _explain(path: Path, error: Exception) -> str:
    text = str(error)
    if "disk is full" in text or "No space" in text or "disk I/O" in text:
        return (
            f"the journal {path} cannot be written: {text}. Every reply stored so far is safe. "
            "Free disk space, and run the same command again."
        )
    if "readonly" in text or "unable to open" in text or isinstance(error, OSError):
        return f"the journal {path} cannot be opened for writing: {text}. Set journal=… or out=… to a writable folder."
    if "locked" in text or "busy" in text:
        return (
            f"the journal {path} is still locked by another process. End that process, or set journal=… to a new path."
        )
    if not isinstance(error, (sqlite3.Error, zlib.error, UnicodeDecodeError)):
        return (
            f"the journal {path} could not store a reply ({type(error).__name__}: {text}). Every reply stored so far "
            "is safe. Please report this error; the same command continues from here."
        )
    return f"the journal {path} is damaged: {text}. {REMEDY}"
