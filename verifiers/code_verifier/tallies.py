"""The result of running the tests of a program, and the texts that explain it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bestofn.builders.records import Execution, JsonObject

_ERRORS = 64 << 10  # maximum number of characters of standard error, over all runs of a program
_NO_MESSAGE = re.compile(r"note: run with|\s+at \S|\s+\.{3} \d+ more")
_SHOWN = 300  # maximum length, in characters, of a value in ``detail`` or an explanation


@dataclass(frozen=True, slots=True)
class Tally:
    """The result of running the tests: the number that passed, and the first test that failed.

    ``disagrees``: the comparison failed, but the plain run passed (``plain_run``). ``problem`` is the reason why the
    tests could not be run, or "". The cause is the sandbox or the tests, never the program. ``doubt``: why a pass does
    not count, or "" (``falsified``).
    """

    passed: int
    total: int
    status: str
    failing: JsonObject | None = None
    problem: str = ""
    stderr: str = ""  # what the program printed to standard error
    disagrees: bool = False
    doubt: str = ""


def short(value: object) -> str:
    """Return ``value`` as text of at most 300 characters, for ``detail`` and explanations."""
    try:
        text = value if isinstance(value, str) else repr(value)
    except ValueError:  # Python refuses to convert an integer with too many digits
        return "an integer with too many digits to show"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def why_ended(execution: Execution) -> str:
    """Return why the program ended without a result: its last error message, or the limit that it exceeded."""
    if execution.status == "error":
        return _last_message(execution.stderr)[:_SHOWN] or f"the program ended with exit code {execution.exit_code}"
    return {
        "timeout": "the program exceeded the time limit",
        "memory": "the program exceeded the memory limit",
        "output": "the program exceeded the output limit",
        "ok": "the program ended before the last test",
    }.get(execution.status, execution.status)


def _last_message(stderr: str) -> str:
    """Return the last line of ``stderr``, with its indented continuation, without stack frames and hints of Rust."""
    lines = [line for line in stderr.splitlines() if line.strip() and not _NO_MESSAGE.match(line)]
    begin = max((at for at, line in enumerate(lines) if not line[0].isspace()), default=0)
    return "; ".join(line.strip() for line in lines[begin:])


def sandbox_problem(execution: Execution) -> str:
    """Return why the sandbox failed, or "" if it did not fail."""
    return str(execution.detail.get("reason") or "the sandbox failed") if execution.status == "infra" else ""


def tally_of(verdicts: Sequence[JsonObject | None], total: int, execution: Execution) -> Tally:
    """Return the tally of ``verdicts``. None is the verdict of a passed case; a dictionary describes a failed case."""
    failing = next((verdict for verdict in verdicts if verdict is not None), None)
    if failing is None and len(verdicts) < total:
        failing = {"case": len(verdicts), "why": execution.status}
    errors = "\n".join(filter(None, (execution.stderr, *(run.stderr for run in execution.runs))))
    return Tally(
        sum(verdict is None for verdict in verdicts), total, execution.status, failing, stderr=errors[:_ERRORS]
    )
