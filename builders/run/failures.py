"""Counts the failures of a shard that may succeed when the command runs again. Called by ``builders.run.pipeline``.

A shard with such failures is not complete. The next command runs its failed stage and every later stage again. The
journal answers all requests that succeeded, so only the failed requests are sent.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bestofn.builders.arrow_types import Table
from bestofn.builders.errors import may_be_retried, names_failed_request
from bestofn.builders.protocols import Stage


def failures(table: Table, stages: Sequence[Stage]) -> dict[str, int]:
    """Return stage name -> number of candidates that failed in this stage and may succeed in a later run.

    ``table`` has the columns that ``stages`` added. Stages without such failures are left out.
    """
    columns = [(stage.name, column) for stage in stages for column in stage.adds if column in COUNTS]
    counts = {stage: COUNTS[column](table) for stage, column in columns}
    return {stage: count for stage, count in counts.items() if count}


def _failed_requests(table: Table) -> int:
    """Return the number of candidates with a provider error that is not permanent."""
    errors = _fields(table, "candidates", "error")["error"]
    return sum(bool(error) and may_be_retried(error) for error in errors)


def _failed_verdicts(table: Table) -> int:
    """Return the number of ``error`` verdicts that bestofn caused. A confidence of 1 means that the data caused it."""
    columns = _fields(table, "verdicts", "outcome", "confidence")
    return sum(
        outcome == "error" and confidence < 1.0
        for outcome, confidence in zip(columns["outcome"], columns["confidence"], strict=True)
    )


def _failed_scores(table: Table) -> int:
    """Return the number of candidates whose score is missing or incomplete because a request of the reward failed.

    ``parts["error"]`` is the reason of a missing score, and ``parts["problem"]`` the reason of an incomplete score.
    """
    parts = (json.loads(one or "{}") for one in _fields(table, "scores", "parts")["parts"])
    return sum(names_failed_request(str(one.get("error") or one.get("problem") or "")) for one in parts)


def _fields(table: Table, column: str, *names: str) -> Mapping[str, list[Any]]:
    """Return fields of the structs in a column of lists of structs, as one flat list per field."""
    pc: Any = importlib.import_module("pyarrow.compute")  # its functions are created at run time
    structs = pc.list_flatten(table.column(column))
    return {name: pc.struct_field(structs, name).to_pylist() for name in names}


COUNTS: Mapping[str, Callable[[Table], int]] = {
    "candidates": _failed_requests,
    "verdicts": _failed_verdicts,
    "scores": _failed_scores,
}
"""Column -> function that counts its failures."""
