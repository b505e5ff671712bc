"""Adaptive sampling: samples the candidates of a query in small steps, and stops when there are enough.

A preference pair needs only one candidate that passed and one that failed, so a fixed number of samples can be
wasteful. Used by ``builders.stages.generate``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bestofn.builders.concurrency.tasks import run_together
from bestofn.builders.protocols import Verifier
from bestofn.builders.records import Candidate, Query, Verdict
from bestofn.builders.stages.verdicts import verdict_of
from bestofn.builders.statistics.proportions import wilson_interval

StoppedBy = Literal["", "found", "settled", "exhausted"]
Sample = Callable[[Query, Sequence[int]], Awaitable[list[Candidate]]]
"""A function that samples the candidates with the given indices: (query, indices) -> candidates."""


@dataclass(frozen=True)
class Adaptive:
    """Samples ``least`` candidates, then ``step`` more at a time, until one of these conditions is true:

    - "found": at least ``passes`` candidates passed and at least ``fails`` candidates failed.
    - "settled": ``settled`` is set, and half the width of the pass rate's 95 % Wilson interval is at most ``settled``.
    - "exhausted": ``n`` candidates are sampled.

    ``verifier`` is the verifier of the stage ``verify``.

    The number of samples depends on the verdicts, so pass@k over all samples would be biased. The first ``n_fixed``
    candidates are sampled before any verdict is known, so the estimators use only these. Each candidate records
    ``n_fixed``, ``n_used`` (the number of samples) and ``stopped`` (the condition) in ``detail["adaptive"]``.
    """

    verifier: Verifier
    passes: int = 1
    fails: int = 1
    least: int = 2
    step: int = 2
    settled: float | None = None

    def __post_init__(self) -> None:
        minimum = {"passes": 0, "fails": 0, "least": 1, "step": 1}
        for name, value in zip(minimum, (self.passes, self.fails, self.least, self.step), strict=True):
            if value < minimum[name]:
                raise ValueError(f"adaptive.{name} is {value}; expected at least {minimum[name]}")
        if self.settled is not None and not 0 < self.settled < 0.5:
            raise ValueError(f"adaptive.settled is {self.settled}; expected a half-width of the interval, 0 to 0.5")

    async def sample(self, query: Query, n: int, sample: Sample, extra: Sequence[int] = ()) -> list[Candidate]:
        """Sample at most ``n`` candidates of ``query``, then the candidates with the indices ``extra``.

        ``sample`` is a function that samples candidates by their indices. The returned candidates have no verdicts.
        """
        candidates: list[Candidate] = []
        verdicts: list[Verdict] = []
        stopped: StoppedBy = ""
        while not stopped and len(candidates) < n:
            stop = min(n, len(candidates) + (self.step if candidates else self.least))
            new = await sample(query, range(len(candidates), stop))
            verdicts += await run_together(verdict_of(self.verifier, query, candidate) for candidate in new)
            candidates += new
            stopped = self.reason_to_stop(verdicts)
        if extra:
            candidates += await sample(query, extra)
        record = {"n_used": len(verdicts), "n_fixed": min(self.least, n), "stopped": stopped or "exhausted"}
        return [replace(one, detail={**one.detail, "adaptive": record}) for one in candidates]

    def reason_to_stop(self, verdicts: Sequence[Verdict]) -> StoppedBy:
        """Return "found" or "settled" if these verdicts are enough; "" if more candidates are needed."""
        passed = sum(verdict.outcome == "pass" for verdict in verdicts)
        failed = sum(verdict.outcome == "fail" for verdict in verdicts)
        if passed >= self.passes and failed >= self.fails:
            return "found"
        if self.settled is not None and passed + failed:
            low, high = wilson_interval(passed, passed + failed)
            if (high - low) / 2 <= self.settled:
                return "settled"
        return ""
