"""The verdict as a reward: pass above abstain above fail. The default reward (``conf/reward/verification.yaml``)."""

from __future__ import annotations

from collections.abc import Sequence

from bestofn.builders.records import Candidate, Query, Score, Verdict


class VerificationReward:
    """``pass``: 0.5 to 1 by confidence; ``fail``: 0.5 down to 0; ``abstain``: 0.5; ``error`` has no score."""

    name = "verification"

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        """The reward of every verdict."""
        return [Score(_value(verdict)) for verdict in verdicts]


def _value(verdict: Verdict) -> float | None:
    sign = {"pass": 1, "fail": -1, "abstain": 0}.get(verdict.outcome)
    return None if sign is None else 0.5 + sign * verdict.confidence / 2
