"""A database engine of another package: SQLite with the function ``shout``. It runs in the box."""

from __future__ import annotations

import sqlite3

from bestofn.sandbox.languages.sql import only_query

ERRORS = (sqlite3.Error,)


def query(source: str, setup: str) -> list[tuple[object, ...]]:
    """Return the rows of the SQL statement ``source`` in a database that ``setup`` creates."""
    database = sqlite3.connect(":memory:")
    database.create_function("shout", 1, lambda text: f"{text.upper()}!")
    database.executescript(setup)
    return only_query([database.execute(source).fetchall()])
