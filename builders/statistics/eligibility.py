"""Decides which candidates count towards pass@k. No other module decides this.

The run figures, the comparison of runs and ``bestofn loop`` use it. pass@k assumes that no sample depends on the
verdicts of other samples, so three kinds of candidates do not count:

- the greedy candidate, because its temperature is 0;
- a candidate with a verdict other than pass or fail;
- a sample that adaptive sampling added because of earlier verdicts: only the first ``n_fixed`` samples count.

A regenerated candidate counts like the candidate that it replaced.
"""

from __future__ import annotations

from typing import Literal

from bestofn.builders.records import Arm, JsonObject, Outcome, Row

CONCLUSIVE: tuple[Literal["pass", "fail"], ...] = ("pass", "fail")


def counts_towards_pass_at_k(outcome: Outcome | str, arm: Arm | str | None, index: int, n_fixed: int | None) -> bool:
    """Return whether candidate ``index`` counts towards pass@k. ``n_fixed`` is None if sampling was not adaptive."""
    return outcome in CONCLUSIVE and arm != "greedy" and (n_fixed is None or index < n_fixed)


def n_fixed(candidate: Row) -> int | None:
    """Return the number of samples of the query that were sampled unconditionally; None if sampling was not adaptive.

    The number is read from ``detail["adaptive"]`` of one candidate in the query's nested row.
    """
    detail: JsonObject = candidate.get("detail") or {}
    adaptive: JsonObject = detail.get("adaptive") or {}
    return adaptive.get("n_fixed")
