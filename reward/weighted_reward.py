"""Several rewards as one sum."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from bestofn.builders.errors import ConfigError
from bestofn.builders.protocols import Reward
from bestofn.builders.records import Candidate, Query, Score, Verdict


class WeightedReward:
    """Σ weight · value over ``rewards``; a reward without a weight counts once.

    A part that could not be computed leaves the whole without a value, for a sum that lacks a part is no longer
    comparable with its siblings; ``skip_missing`` sums what is there instead. ``parts`` holds each value by name, and
    under "detail" what each part said about it.
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
                f"weights name {sorted(stray)}, rewards are {sorted(self.rewards)}; expected a reward for each weight"
                if stray
                else "rewards is empty; expected at least one"
            )

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        columns = await asyncio.gather(*(reward.score(query, candidates, verdicts) for reward in self.rewards.values()))
        return [self._sum(row) for row in zip(*columns, strict=True)]

    def _sum(self, row: Sequence[Score]) -> Score:
        named = dict(zip(self.rewards, row, strict=True))
        parts: dict[str, Any] = {name: score.value for name, score in named.items()}
        if detail := {name: dict(score.parts) for name, score in named.items() if score.parts}:
            parts["detail"] = detail
        known = [self.weights[name] * score.value for name, score in named.items() if score.value is not None]
        missing = len(known) < len(named) and not self.skip_missing
        return Score(None if missing or not known else sum(known), parts)
