"""SQL: SQLite runs in the forked child, with a new database in memory for each call.

``supervisor`` calls ``become_program`` in a confined child.
"""

from __future__ import annotations

import os
import sqlite3
from typing import Any

from bestofn.sandbox.inside import plain
from bestofn.sandbox.inside.confine import Caps
from bestofn.sandbox.inside.descriptors import RESULT, write_all
from bestofn.sandbox.inside.jobs import await_job, close_fault

LIMITS_ADDRESS_SPACE = True

_REFUSED = {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH}


def become_program(caps: Caps) -> None:
    """Wait for a job and answer each of its calls with the rows that the program's query returns.

    The ``args`` of a call are ``[setup]``, the SQL statements that create the tables.
    """
    job = await_job()
    close_fault()
    calls = job["calls"] or [{"args": [""]}]
    for call in calls:
        try:
            rows = query(job["source"], plain.decode(call["args"])[0])
            line: plain.FormObject = {"value": [plain.encode(list(row)) for row in rows]}
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
            line = {"error": [type(error).__name__, str(error)[:500]]}
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


def become_driver(count: int, program_count: int, caps: Caps) -> None:
    """Raise ``NotImplementedError``. SQL has no driver, because the host compares the rows of the query."""
    raise NotImplementedError("SQL programs are verified by the rows of their query; there are no tests to run")


def query(source: str, setup: str) -> list[tuple[Any, ...]]:
    """Run the query ``source`` in a database created by ``setup``, and return its rows.

    Raises ``sqlite3.ProgrammingError`` unless ``source`` contains exactly one query. With several queries it would be
    unclear which one is the answer.
    """
    database = sqlite3.connect(":memory:", isolation_level=None)
    database.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    database.executescript(setup)
    database.set_authorizer(_authorize)
    rows: list[tuple[Any, ...]] | None = None
    for statement in statements(source):
        cursor = database.execute(statement)
        if cursor.description is not None:
            if rows is not None:
                raise sqlite3.ProgrammingError("the program contains more than one query; expected exactly one")
            rows = cursor.fetchall()
    if rows is None:
        raise sqlite3.ProgrammingError("the program contains no query; expected exactly one")
    return rows


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
