"""A weighted sum of several rewards. ``conf/reward/verified_and_short.yaml`` is an example."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from bestofn.builders.errors import ConfigError
from bestofn.builders.formats.missing_scores import finite_scores
from bestofn.builders.protocols import PlannedCalls, Reward, planned_calls
from bestofn.builders.records import Candidate, Query, Score, Verdict


class WeightedReward:
    """Scores the weighted sum of the values of ``rewards``. The default weight is 1.

    If one of the values is None, the sum is None, because a partial sum cannot be compared with the sums of siblings.
    With ``skip_missing``, the missing value is left out of the sum instead. ``parts`` holds the value of each reward by
    name. ``parts["detail"]`` holds the ``parts`` of each reward.
    """

    name = "weighted"

    def __init__(
        self, rewards: Mapping[str, Reward], weights: Mapping[str, float] | None = None, skip_missing: bool = False
    ) -> None:
        self.rewards = dict(rewards)
        self.weights = dict.fromkeys(self.rewards, 1.0) | dict(weights or {})
        self.skip_missing = skip_missing
        stray = set(self.weights) - set(self.rewards)
        if not self.rewards or stray:
            raise ConfigError(
                f"weights has the keys {sorted(stray)}, which are not rewards; expected keys of {sorted(self.rewards)}"
                if stray
                else "rewards is empty; expected at least one reward"
            )

    def planned_calls(self, query: Query, candidates: int) -> Sequence[PlannedCalls]:
        """Return the planned calls of all rewards."""
        return [calls for reward in self.rewards.values() for calls in planned_calls(reward, query, candidates)]

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        """Return the weighted sum of the rewards for each candidate."""
        scored = await asyncio.gather(*(reward.score(query, candidates, verdicts) for reward in self.rewards.values()))
        columns = [finite_scores(column) for column in scored]
        return [self._sum(row) for row in zip(*columns, strict=True)]

    def _sum(self, row: Sequence[Score]) -> Score:
        named = dict(zip(self.rewards, row, strict=True))
        parts: dict[str, object] = {name: score.value for name, score in named.items()}
        if detail := {name: dict(score.parts) for name, score in named.items() if score.parts}:
            parts["detail"] = detail
        known = [self.weights[name] * score.value for name, score in named.items() if score.value is not None]
        failed = {name: score for name, score in named.items() if score.value is None}
        if not failed:
            return Score(sum(known), parts)
        problem = missing_values(failed)
        if known and self.skip_missing:
            return Score(sum(known), parts | {"problem": problem})
        return Score(None, parts | {"error": problem})


def missing_values(failed: Mapping[str, Score]) -> str:
    """Return the reasons of missing values as one text.

    ``failed`` maps the name of each reward that gave no value to its score.
    """
    return "; ".join(f"{name}: {score.parts.get('error') or 'no value'}" for name, score in failed.items())
