"""Database engines: the file of an engine (``sandbox.engines``) answers each call in a new database.

``supervisor`` calls ``become_program`` in a confined child. The job contains the source of the file.
"""

from __future__ import annotations

import sys
from typing import Any

from bestofn.sandbox.inside.confine import Caps
from bestofn.sandbox.inside.jobs import await_job, close_fault
from bestofn.sandbox.languages import sql
from bestofn.sandbox.languages.sql import Row, answer_calls

LIMITS_ADDRESS_SPACE = False  # engines reserve more than they use

NO_ENGINE = "NoEngine"  # the kind of the error if the box lacks the engine


def become_program(caps: Caps) -> None:
    """Wait for a job and answer each of its calls with the rows that the program's query returns."""
    job = await_job()
    close_fault()
    sys.modules[sql.__name__] = sql  # hidden by the supervisor; engines import from it
    engine: dict[str, Any] = {"__name__": "engine"}
    try:
        exec(compile(job["engine"], "engine", "exec"), engine)  # noqa: S102 - the file is trusted; the query is data
    except ImportError:
        answer_calls(job, _no_engine, (LookupError,), kind=NO_ENGINE)
    answer_calls(job, engine["query"], engine["ERRORS"])


def become_driver(count: int, program_count: int, caps: Caps) -> None:
    """Raise ``NotImplementedError``. SQL has no driver, because the host compares the rows of the query."""
    raise NotImplementedError("SQL programs are verified by the rows of their query; there are no tests to run")


def _no_engine(source: str, setup: str) -> list[Row]:
    raise LookupError("the sandbox has no engine")
