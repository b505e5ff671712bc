"""Combines several rewards on one scale, with a penalty for disagreement. See ``conf/reward/ensemble.yaml``."""

from __future__ import annotations

import asyncio
import math
import statistics as numbers
from collections.abc import Mapping, Sequence
from typing import Literal

from bestofn.builders.errors import ConfigError
from bestofn.builders.formats.missing_scores import finite_scores
from bestofn.builders.protocols import PlannedCalls, Reward, planned_calls
from bestofn.builders.records import Candidate, Query, Score, Verdict
from bestofn.reward.weighted_reward import missing_values


class EnsembleReward:
    """Combines the z-scores of several rewards.

    ``combine`` is ``mean``, ``min``, or ``uwo``: mean − ``penalty`` · variance (Coste et al. 2023). With the scale
    ``query``, the z-scores of a reward are computed from the answers to one query. With ``run``, values are comparable
    between queries: the build first scores its first queries, and estimates a (mean, standard deviation) per reward
    from them (``builders.run.preflight``). ``scales`` replaces these estimates with your own numbers.

    ``parts`` holds the value and the z-score of each reward. ``parts["disagreement"]`` is the variance of the z-scores.
    If the value of one reward is None or not finite for a candidate, the combined value is None, and
    ``parts["error"]`` names the reward. With ``skip_missing``, this reward is left out instead.
    """

    name = "ensemble"

    def __init__(
        self,
        rewards: Mapping[str, Reward],
        combine: Literal["mean", "min", "uwo"] = "uwo",
        penalty: float = 0.5,
        scales: Mapping[str, tuple[float, float]] | None = None,
        skip_missing: bool = False,
        scale: Literal["query", "run"] = "query",
    ) -> None:
        if not rewards:
            raise ValueError("rewards is empty; expected at least one reward")
        self.rewards, self.combine, self.penalty = dict(rewards), combine, penalty
        self.scales = dict(scales or {})
        self.scale = scale
        self.skip_missing = skip_missing

    def planned_calls(self, query: Query, candidates: int) -> Sequence[PlannedCalls]:
        """Return the planned calls of all rewards."""
        return [calls for reward in self.rewards.values() for calls in planned_calls(reward, query, candidates)]

    @property
    def lacks_scales(self) -> bool:
        """Whether the scales of the run must be estimated before ``score`` is called."""
        return self.scale == "run" and not self.scales

    async def values(
        self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]
    ) -> dict[str, list[float | None]]:
        """Return the values of each reward, one per candidate, without a common scale."""
        columns = await self._columns(query, candidates, verdicts)
        return {name: [score.value for score in column] for name, column in zip(self.rewards, columns, strict=True)}

    async def _columns(
        self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]
    ) -> list[list[Score]]:
        scored = await asyncio.gather(*(reward.score(query, candidates, verdicts) for reward in self.rewards.values()))
        return [finite_scores(column) for column in scored]

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        """Return the combined z-score of every candidate. Raises ``ConfigError`` if the scales are not known."""
        if self.lacks_scales:
            raise ConfigError(
                "reward.scale=run works only in a build with executor=local whose reward is the ensemble itself. "
                "Set reward.scales={NAME: [MEAN, DEVIATION], …}, or reward.scale=query."
            )
        columns = await self._columns(query, candidates, verdicts)
        raw = [[score.value for score in column] for column in columns]
        standard = [z_scores(values, self.scales.get(name)) for name, values in zip(self.rewards, raw, strict=True)]
        return [
            self._one([column[place] for column in columns], [column[place] for column in standard])
            for place in range(len(candidates))
        ]

    def _one(self, scores: Sequence[Score], standard: Sequence[float | None]) -> Score:
        parts: dict[str, object] = {name: score.value for name, score in zip(self.rewards, scores, strict=True)}
        known = {name: value for name, value in zip(self.rewards, standard, strict=True) if value is not None}
        failed = {name: score for name, score in zip(self.rewards, scores, strict=True) if name not in known}
        if failed and (not known or not self.skip_missing):
            return Score(None, parts | {"error": missing_values(failed)})
        if failed:
            parts["problem"] = missing_values(failed)
        values = list(known.values())
        variance = numbers.pvariance(values)
        parts |= {f"z_{name}": value for name, value in known.items()}
        parts["disagreement"] = variance
        mean = math.fsum(values) / len(values)
        return Score({"mean": mean, "min": min(values), "uwo": mean - self.penalty * variance}[self.combine], parts)


def z_scores(values: Sequence[float | None], scale: tuple[float, float] | None = None) -> list[float | None]:
    """Return (value − mean) / standard deviation for each value; None stays None.

    ``scale`` is (mean, standard deviation); by default both are computed from ``values``. If the standard deviation is
    0, every z-score is 0.
    """
    known = [value for value in values if value is not None]
    if not known:
        return list(values)
    mean, deviation = scale or (math.fsum(known) / len(known), numbers.pstdev(known))
    return [None if value is None else (value - mean) / deviation if deviation > 1e-12 else 0.0 for value in values]
