"""Decides which candidates count towards pass@k. No other module decides this.

``analysis.candidates`` applies the rules. pass@k assumes that no sample depends on
the verdicts of samples, so four kinds of candidates do not count:

- the greedy candidate, because its temperature is 0, and the candidates of further models (``provider=[A,B]``);
- a candidate with a verdict other than pass or fail;
- a sample that adaptive sampling added because of earlier verdicts: only the first ``n_fixed`` samples count;
- a regenerated candidate: ``bestofn regenerate`` samples again because of verdicts, so only the first draw counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from bestofn.builders.records import JsonObject, Row

CONCLUSIVE: tuple[Literal["pass", "fail"], ...] = ("pass", "fail")
FIRST_MODEL = ("sample", "greedy")  # the arms of the first model


def is_independent(arm: str | None, index: int, n_fixed: float | None) -> bool:
    """Return whether candidate ``index`` is a sample of the run's first model that depends on no verdict.

    ``n_fixed`` is None if sampling was not adaptive.
    """
    return arm in (None, "sample") and (n_fixed is None or index < n_fixed)


def first_draw(answered: Mapping[int, bool]) -> int:
    """Return which attempt of a candidate is its first draw: the first with an answer, or the last if none has one.

    ``answered`` maps each attempt to whether it has an answer. A sample that replaces an error does not depend on a
    verdict, so it counts.
    """
    attempts = sorted(answered)
    return next((attempt for attempt in attempts if answered[attempt]), attempts[-1])


def n_fixed(candidate: Row) -> int | None:
    """Return the number of samples of the query that were sampled unconditionally; None if sampling was not adaptive.

    The number is read from ``detail["adaptive"]`` of one candidate in the query's nested row.
    """
    detail: JsonObject = candidate.get("detail") or {}
    adaptive: JsonObject = detail.get("adaptive") or {}
    return adaptive.get("n_fixed")
