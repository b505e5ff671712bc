"""The confidence of a finding: the share of right decisions that was measured for its method and extraction."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from bestofn.verifiers import calibration

Outcome = Literal["pass", "fail", "abstain"]

THE_UNIT_IS_MISSING = 0.6
"""The most that is stated if the unit is missing, because the task decides whether such an answer is right."""
GUESSED = calibration.GUESSED_EXTRACTIONS  # extraction methods that found no mark of the answer


@lru_cache(maxsize=4_096)
def confidence(outcome: Outcome, method: str, extraction: str) -> float:
    """Return the confidence of a finding, from 0 to 1. The confidence of ``abstain`` is 0."""
    if outcome == "abstain":
        return 0.0
    rule = calibration.rule_of({"method": method, "extraction": extraction})
    measured = calibration.confidence("math", outcome, rule)
    return min(measured, THE_UNIT_IS_MISSING) if "the unit is missing" in rule else measured
