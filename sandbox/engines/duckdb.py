"""DuckDB: a new database in memory for each call, without access to files."""

from __future__ import annotations

import importlib
from typing import Any

from bestofn.sandbox.languages.sql import Row, only_query, plain_value

_ENGINE: Any = importlib.import_module("duckdb")
ERRORS = (_ENGINE.Error, ValueError, OverflowError)
_SETTINGS = {
    "threads": 1,
    "memory_limit": "400MB",
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}


def query(source: str, setup: str) -> list[Row]:
    """Run the query ``source`` in a new database that ``setup`` has filled, and return its rows."""
    database = _ENGINE.connect(":memory:", config=_SETTINGS)
    if setup.strip():
        database.execute(setup)
    database.execute("SET lock_configuration = true")
    rows = only_query(
        [
            database.execute(statement).fetchall()
            if statement.type == _ENGINE.StatementType.SELECT
            else database.execute(statement) and None
            for statement in _ENGINE.extract_statements(source)
        ]
    )
    return [tuple(map(plain_value, row)) for row in rows]
