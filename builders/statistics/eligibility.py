"""Which candidates count towards pass@k: the one place that decides it.

The figures of a run, the comparison of runs and the loop call it. pass@k assumes samples that were drawn independently
of each other's verdicts, so three kinds of candidates do not count:

- the greedy candidate, because it was not sampled;
- a candidate without a verdict of pass or fail;
- a sample that adaptive sampling added after it had seen verdicts: only the first ``n_fixed`` samples count.

A regenerated candidate counts like the one that it replaced.
"""

from __future__ import annotations

from typing import Literal

from bestofn.builders.records import Arm, JsonObject, Outcome, Row

CONCLUSIVE: tuple[Literal["pass", "fail"], ...] = ("pass", "fail")


def counts_towards_pass_at_k(outcome: Outcome | str, arm: Arm | str | None, index: int, n_fixed: int | None) -> bool:
    """Whether candidate ``index`` of a query counts. ``n_fixed`` None means that sampling was not adaptive."""
    return outcome in CONCLUSIVE and arm != "greedy" and (n_fixed is None or index < n_fixed)


def n_fixed(candidate: Row) -> int | None:
    """How many samples of the query were drawn unconditionally, as a candidate of a nested row records it.

    None without adaptive sampling.
    """
    detail: JsonObject = candidate.get("detail") or {}
    adaptive: JsonObject = detail.get("adaptive") or {}
    return adaptive.get("n_fixed")
