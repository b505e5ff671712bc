"""The default reward. It depends on the verdict: pass > abstain > fail. See ``conf/reward/verification.yaml``."""

from __future__ import annotations

from collections.abc import Sequence

from bestofn.builders.records import Candidate, Query, Score, Verdict


class VerificationReward:
    """Scores a verdict from 0 to 1, by its outcome and its confidence.

    ``pass``: 0.5 + confidence / 2. ``fail``: 0.5 − confidence / 2. ``abstain``: 0.5. ``error``: None.
    """

    name = "verification"

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        """Return one score per verdict."""
        return [Score(_value(verdict)) for verdict in verdicts]


def _value(verdict: Verdict) -> float | None:
    sign = {"pass": 1, "fail": -1, "abstain": 0}.get(verdict.outcome)
    return None if sign is None else 0.5 + sign * verdict.confidence / 2
