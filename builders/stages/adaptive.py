"""When enough candidates of a query have been drawn: a pair needs one that passes and one that fails, not sixteen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bestofn.builders.protocols import Verifier
from bestofn.builders.records import Verdict
from bestofn.builders.statistics.intervals import wilson_interval

Stopped = Literal["", "found", "settled", "exhausted"]


@dataclass(frozen=True)
class Adaptive:
    """Draw ``least`` candidates, then ``step`` more at a time, until there is enough or ``n`` are drawn.

    Enough is ``passes`` that passed and ``fails`` that failed, or, with ``settled``, a 95 % interval (Wilson) of the
    pass rate that is at most so wide on either side. ``verifier`` judges as the verify stage will.

    How many are drawn depends on what was found, so all of them together would give a biased pass@k. Each candidate
    says so in ``detail["adaptive"]``: ``n_used``, ``stopped`` (found, settled or exhausted), and ``n_fixed``, the first
    ``least`` samples, which were drawn whatever was found: the estimators count those alone.
    """

    verifier: Verifier
    passes: int = 1
    fails: int = 1
    least: int = 2
    step: int = 2
    settled: float | None = None

    def __post_init__(self) -> None:
        for name, lowest in (("passes", 0), ("fails", 0), ("least", 1), ("step", 1)):
            if getattr(self, name) < lowest:
                raise ValueError(f"adaptive.{name} is {getattr(self, name)}; expected at least {lowest}")
        if self.settled is not None and not 0 < self.settled < 0.5:
            raise ValueError(f"adaptive.settled is {self.settled}; expected a half-width between 0 and 0.5")

    def reason_to_stop(self, verdicts: Sequence[Verdict]) -> Stopped:
        """ "" to go on."""
        passed = sum(verdict.outcome == "pass" for verdict in verdicts)
        failed = sum(verdict.outcome == "fail" for verdict in verdicts)
        if passed >= self.passes and failed >= self.fails:
            return "found"
        if self.settled is not None and passed + failed:
            low, high = wilson_interval(passed, passed + failed)
            if (high - low) / 2 <= self.settled:
                return "settled"
        return ""
