"""Counts the failed candidates of a shard for which a new try may succeed. Called by ``builders.run.pipeline``.

A shard with such failures is not complete. The next command runs its failed stage and every later stage again. The
journal answers all requests that succeeded, so only the failed requests are sent.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

from bestofn.builders.errors import may_be_retried, names_failed_request
from bestofn.builders.protocols import Stage
from bestofn.builders.records import JsonObject, Row


def failures(rows: Sequence[Row], stages: Sequence[Stage]) -> dict[str, int]:
    """Return stage name -> number of candidates that failed in this stage and may succeed in a later run.

    ``rows`` are nested rows with the columns that ``stages`` added. Stages without such failures are left out.
    """
    columns = [(stage.name, column) for stage in stages for column in stage.adds if column in HAS_FAILED]
    counts = {stage: sum(map(HAS_FAILED[column], _entries(rows, column))) for stage, column in columns}
    return {stage: count for stage, count in counts.items() if count}


def _entries(rows: Sequence[Row], column: str) -> Iterator[JsonObject]:
    """Return the entries of ``column`` in all rows: one per candidate."""
    return itertools.chain.from_iterable(row[column] or () for row in rows)


def _has_failed_request(candidate: JsonObject) -> bool:
    """Return whether ``candidate`` has a provider error that is not permanent."""
    error = candidate["error"]
    return bool(error) and may_be_retried(error)


def _is_own_error(verdict: JsonObject) -> bool:
    """Return whether ``verdict`` is an ``error`` that bestofn caused.

    An ``error`` with a confidence of 1 is caused by the data.
    """
    return verdict["outcome"] == "error" and verdict["confidence"] < 1.0


def _is_failed_score(score: JsonObject) -> bool:
    """Return whether ``score`` is missing or incomplete because a request of the reward failed.

    ``parts["error"]`` is the reason of a missing score, and ``parts["problem"]`` the reason of an incomplete score.
    """
    parts: JsonObject = score["parts"] or {}
    return names_failed_request(str(parts.get("error") or parts.get("problem") or ""))


HAS_FAILED: Mapping[str, Callable[[JsonObject], bool]] = {
    "candidates": _has_failed_request,
    "verdicts": _is_own_error,
    "scores": _is_failed_score,
}
"""Column -> function that returns whether one of its entries is a failure."""
