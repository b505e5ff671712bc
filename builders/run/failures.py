"""Counts the failed candidates of a shard for which a new try may succeed. Called by ``builders.run.part_writer``.

A shard with such failures is not complete. The next command runs its failed stage and every later stage again. The
journal answers all requests that succeeded, so only the failed requests are sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from bestofn.builders.errors import may_be_retried, names_failed_request
from bestofn.builders.stages.stage import Stage


def failures(table: pa.Table, stages: Sequence[Stage]) -> dict[str, int]:
    """Return stage name -> number of candidates that failed in this stage and may succeed in a later run.

    ``table`` has the nested rows with the columns that ``stages`` added. Stages without such failures are left out.
    """
    columns = [(stage.name, column) for stage in stages for column in stage.adds if column in FAILURES]
    counts = {stage: sum(_failed(table, column)) for stage, column in columns}
    return {stage: count for stage, count in counts.items() if count}


def _failed(table: pa.Table, column: str) -> Iterator[bool]:
    """Yield for each entry of ``column`` in all rows (one per candidate) whether it is a failure."""
    failure = FAILURES[column]
    for chunk in table.column(column).chunks:
        entries = chunk.flatten()
        members = [entries.field(name).to_pylist() for name in failure.members]
        yield from (failure.has_failed(*values) for values in zip(*members, strict=True))


def _has_failed_request(error: str | None) -> bool:
    """Return whether a candidate has a provider error that is not permanent."""
    return bool(error) and may_be_retried(error)


def _is_own_error(outcome: str, confidence: float) -> bool:
    """Return whether a verdict is an ``error`` that bestofn caused.

    An ``error`` with a confidence of 1 is caused by the data.
    """
    return outcome == "error" and confidence < 1.0


def _is_failed_score(parts: str | None) -> bool:
    """Return whether a score is missing or incomplete because a request of the reward failed.

    ``parts["error"]`` is the reason of a missing score, and ``parts["problem"]`` the reason of an incomplete score.
    """
    values: dict[str, Any] = json.loads(parts or "{}")
    return names_failed_request(str(values.get("error") or values.get("problem") or ""))


class _Failure(NamedTuple):
    """Which members of an entry show that it failed."""

    members: Sequence[str]
    has_failed: Callable[..., bool]


FAILURES: Mapping[str, _Failure] = {
    "candidates": _Failure(["error"], _has_failed_request),
    "verdicts": _Failure(["outcome", "confidence"], _is_own_error),
    "scores": _Failure(["parts"], _is_failed_score),
}
"""Column -> how its failed entries are recognised."""
