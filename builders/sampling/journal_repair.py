"""Checks a journal, and copies what can be read of a damaged one to a new file. Used by ``bestofn doctor``."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bestofn.builders.concurrency.process import process_from
from bestofn.builders.errors import JournalError
from bestofn.builders.sampling.journal_file import connect, transaction, unpacked_reply

KEYS = {"requests": ("id",), "calls": ("id",), "answers": ("request", "attempt", "number"), "batches": ("id",)}
"""Table -> primary key."""
SIDE_FILES = ("-wal", "-shm")
Row = tuple[Any, ...]


@dataclass
class JournalHealth:
    """What a check found: the intact rows by table, the number of damaged replies, and the errors of SQLite."""

    rows: dict[str, list[Row]] = field(default_factory=dict)
    damaged_replies: int = 0
    lost_answers: int = 0
    errors: list[str] = field(default_factory=list)

    @property
    def is_intact(self) -> bool:
        """Whether nothing is damaged."""
        return not (self.errors or self.damaged_replies or self.lost_answers)


def examine(path: Path) -> JournalHealth:
    """Read the whole journal at ``path``. Nothing is changed."""
    health = JournalHealth()
    with contextlib.closing(_connected(path)) as connection:
        connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
        try:
            found = [row[0] for row in connection.execute("PRAGMA integrity_check(3)")]
        except sqlite3.Error as error:
            found = [str(error)]
        health.errors += [text.splitlines()[-1] for text in found if text != "ok"]
        for table, key in KEYS.items():
            health.rows[table] = _readable(connection, table, key, health)
    _drop_damaged(health)
    return health


def repair(path: Path, health: JournalHealth) -> Path:
    """Write the intact rows of ``health`` to a new journal at ``path``. Returns the path of the damaged one.

    Raises ``JournalError`` if a process uses the journal.
    """
    _refuse_if_in_use(path)
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    kept = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}")
    new.unlink(missing_ok=True)
    with contextlib.closing(connect(new, readonly=False)) as connection:
        with transaction(connection):
            for table, rows in health.rows.items():
                for row in rows:
                    connection.execute(f"INSERT OR IGNORE INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for suffix in ("", *SIDE_FILES):
        with contextlib.suppress(FileNotFoundError):
            os.replace(f"{path}{suffix}", f"{kept}{suffix}")
    os.replace(new, path)
    return kept


def _connected(path: Path) -> sqlite3.Connection:
    """Open the journal without changing any file. Without a write-ahead log, SQLite needs no file next to it."""
    mode = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "mode=ro&immutable=1"
    return sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True)


def _readable(connection: sqlite3.Connection, table: str, key: tuple[str, ...], health: JournalHealth) -> list[Row]:
    """Return the rows of ``table`` before and after its damaged places."""
    rows: dict[Row, Row] = {}
    for direction in ("ASC", "DESC"):
        order = ", ".join(f"{column} {direction}" for column in key)
        names = ", ".join(key)
        try:
            for row in connection.execute(f"SELECT {names}, {table}.* FROM {table} ORDER BY {order}"):
                rows[row[: len(key)]] = row[len(key) :]
            return list(rows.values())
        except (sqlite3.Error, ValueError, OverflowError) as error:
            health.errors.append(f"{table}: {error}")
    return list(rows.values())


def _drop_damaged(health: JournalHealth) -> None:
    """Remove the rows that cannot be used: damaged replies and requests, and answers without an intact reply."""
    health.rows["requests"] = [row for row in health.rows["requests"] if _decompresses(row[-1])]
    requests = {row[0] for row in health.rows["requests"]}
    calls = {row[0]: row for row in health.rows["calls"] if _is_call(row) and row[1] in requests}
    health.damaged_replies = len(health.rows["calls"]) - len(calls)
    health.rows["calls"] = list(calls.values())
    answers = [row for row in health.rows["answers"] if _is_intact_answer(row, calls)]
    health.lost_answers = len(health.rows["answers"]) - len(answers)
    health.rows["answers"] = answers
    health.rows["batches"] = [row for row in health.rows["batches"] if _is_batch(row)]


def _is_call(row: Row) -> bool:
    """Return whether the values of a call have the types of the table, and its reply decompresses."""
    call, request, attempt, request_id, seconds, model, answers, usd, prompt, completion, mode, at, reply = row
    whole = all(isinstance(value, int) for value in (call, attempt, answers, prompt, completion))
    texts = all(isinstance(value, str) for value in (request_id, model, mode))
    numbers = all(isinstance(value, int | float) for value in (seconds, at)) and isinstance(usd, int | float | None)
    return isinstance(request, bytes) and whole and texts and numbers and _decompresses(reply)


def _is_intact_answer(row: Row, calls: Mapping[int, Row]) -> bool:
    request, attempt, number, call, choice = row
    if call not in calls:
        return False
    try:
        unpacked_reply(calls[call][-1], request, attempt, number - choice, calls[call][6])
    except (zlib.error, TypeError, ValueError):
        return False
    return calls[call][1:3] == (request, attempt)


def _is_batch(row: Row) -> bool:
    try:
        return isinstance(json.loads(zlib.decompress(row[3])), list)
    except (zlib.error, TypeError, ValueError):
        return False


def _decompresses(blob: object) -> bool:
    try:
        return isinstance(blob, bytes) and bool(zlib.decompress(blob) or True)
    except zlib.error:
        return False


def _refuse_if_in_use(path: Path) -> None:
    for process in _users(path):
        raise JournalError(f"{path} is in use by {process}. Wait until it has ended, then run `bestofn doctor` again.")


def _users(path: Path) -> Iterator[str]:
    """Yield the processes that use the journal, as far as its table of owners can be read."""
    with contextlib.suppress(sqlite3.Error, ValueError, KeyError, TypeError):
        with contextlib.closing(_connected(path)) as connection:
            rows = connection.execute("SELECT process FROM owners").fetchall()
        for (text,) in rows:
            process = process_from(json.loads(text))
            if process.is_alive():
                yield str(process)
