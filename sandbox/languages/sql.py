"""SQL: SQLite runs in the forked child, with a new database in memory for each call."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, NoReturn

from bestofn.sandbox.inside import plain
from bestofn.sandbox.inside.confine import Caps
from bestofn.sandbox.inside.descriptors import RESULT, write_all
from bestofn.sandbox.inside.jobs import Job, await_job, close_fault
from bestofn.sandbox.languages.language import Language

Row = tuple[Any, ...]
Query = Callable[[str, str], list[Row]]
"""A function that runs a query: (source of the query, statements that create the tables) -> rows."""

_REFUSED = {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH}


class Database(NamedTuple):
    """A database engine: its function ``query``, and the ``errors`` that a wrong query raises.

    If ``error_name`` is set, replies contain ``error_name`` instead of the class name of the error.
    """

    query: Query
    errors: tuple[type[Exception], ...]
    error_name: str = ""


def database_language(open_database: Callable[[Job], Database], limits_address_space: bool = True) -> Language:
    """Return the language for queries to one database engine. The host compares the rows."""

    def become_program(caps: Caps) -> None:
        """Wait for a job. Answer each call of the job with the rows that the program's query returns."""
        job = await_job()
        close_fault()
        _answer_calls(job, open_database(job))

    return Language(become_program, limits_address_space=limits_address_space)


def _answer_calls(job: Job, database: Database) -> NoReturn:
    """Answer each call of ``job`` with the rows of its query, then end the process.

    The ``args`` of a call are ``[setup]``, the SQL statements that create the tables.
    """
    calls = job["calls"] or [{"args": [""]}]
    for call in calls:
        try:
            rows = database.query(job["source"], plain.decode(call["args"])[0])
            line: plain.FormObject = {"value": [plain.encode(list(row)) for row in rows]}
        except database.errors as error:
            line = {"error": [database.error_name or type(error).__name__, str(error)[:500]]}
        except MemoryError:
            os.write(2, b"MemoryError\n")
            os._exit(1)
        write_all(RESULT, plain.dumps(line) + b"\n")
        if job["mode"] == "run" and "value" in line:
            print("\n".join("|".join("" if item is None else str(item) for item in row) for row in rows), flush=True)
        elif job["mode"] == "run":
            os.write(2, f"{line['error'][0]}: {line['error'][1]}\n".encode())
            os._exit(1)
    os._exit(0)


def query(source: str, setup: str) -> list[Row]:
    """Run the query ``source`` in a new database that ``setup`` has filled, and return its rows.

    Raises ``ValueError`` unless ``source`` contains exactly one query.
    """
    database = sqlite3.connect(":memory:", isolation_level=None)
    database.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    database.executescript(setup)
    database.set_authorizer(_authorize)
    results: list[list[Row] | None] = []
    for statement in statements(source):
        cursor = database.execute(statement)
        results.append(cursor.fetchall() if cursor.description is not None else None)
    return only_query(results)


def only_query(results: Sequence[list[Row] | None]) -> list[Row]:
    """Return the rows of the only query among the results of statements.

    The result of a statement without rows is None.

    Raises ``ValueError`` unless there is exactly one query, because it would be unclear which rows count.
    """
    queries = [rows for rows in results if rows is not None]
    if len(queries) != 1:
        found = "more than one query" if queries else "no query"
        raise ValueError(f"the program contains {found}; expected exactly one")
    return queries[0]


def plain_value(value: object) -> object:
    """Return a value of the engine as a number or a string. Lists and structures become JSON text."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return json.dumps(value, sort_keys=True, default=str) if isinstance(value, list | dict | tuple) else str(value)


def statements(source: str) -> list[str]:
    """Split ``source`` at the semicolons that end a statement."""
    parts, begin = [], 0
    for place, letter in enumerate(source):
        if letter == ";" and sqlite3.complete_statement(source[begin : place + 1]):
            parts.append(source[begin : place + 1])
            begin = place + 1
    parts.append(source[begin:])
    return [statement for statement in parts if statement.strip(" \t\r\n;")]


def _authorize(action: int, *names: str | None) -> int:
    if action in _REFUSED or (action == sqlite3.SQLITE_FUNCTION and names[1] == "load_extension"):
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


_SQLITE = Database(query, (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError))
LANGUAGE = database_language(lambda job: _SQLITE)
