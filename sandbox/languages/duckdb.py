"""DuckDB: the engine runs in the forked child, with a new database in memory for each call, as SQLite does.

``supervisor`` calls ``become_program`` in a confined child. The engine is the Python package ``duckdb``. A sandbox has
it with ``sandbox.packages=[duckdb]``.
"""

from __future__ import annotations

import importlib
import json
from decimal import Decimal
from typing import Any

from bestofn.sandbox.inside.confine import Caps
from bestofn.sandbox.inside.jobs import await_job, close_fault
from bestofn.sandbox.languages.sql import Row, answer_calls, only_query

LIMITS_ADDRESS_SPACE = False  # the engine reserves more than it uses

NO_ENGINE = "NoEngine"  # the kind of the error if the box lacks the package
_SETTINGS = {
    "threads": 1,
    "memory_limit": "400MB",
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}


def become_program(caps: Caps) -> None:
    """Wait for a job and answer each of its calls with the rows that the program's query returns."""
    job = await_job()
    close_fault()
    try:
        engine: Any = importlib.import_module("duckdb")
    except ImportError:
        answer_calls(job, _no_engine, (LookupError,), kind=NO_ENGINE)
    answer_calls(job, lambda source, setup: _query(engine, source, setup), (engine.Error, ValueError, OverflowError))


def become_driver(count: int, program_count: int, caps: Caps) -> None:
    """Raise ``NotImplementedError``. SQL has no driver, because the host compares the rows of the query."""
    raise NotImplementedError("SQL programs are verified by the rows of their query; there are no tests to run")


def _no_engine(source: str, setup: str) -> list[Row]:
    raise LookupError("the sandbox has no package duckdb")


def _query(engine: Any, source: str, setup: str) -> list[Row]:
    """Run the query ``source`` in a database created by ``setup``, and return its rows."""
    database = engine.connect(":memory:", config=_SETTINGS)
    if setup.strip():
        database.execute(setup)
    database.execute("SET lock_configuration = true")
    rows = only_query(
        [
            database.execute(statement).fetchall()
            if statement.type == engine.StatementType.SELECT
            else database.execute(statement) and None
            for statement in engine.extract_statements(source)
        ]
    )
    return [tuple(map(_plain, row)) for row in rows]


def _plain(value: object) -> object:
    """Return a value of the engine as a number or a text. Lists and structures become JSON text."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return json.dumps(value, sort_keys=True, default=str) if isinstance(value, list | dict | tuple) else str(value)
