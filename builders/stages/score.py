"""Reward: one score for each candidate, siblings together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bestofn.builders.errors import row_boundary
from bestofn.builders.protocols import Reward
from bestofn.builders.records import Score
from bestofn.builders.schema import candidate_from_row, features, query_from_row, score_to_row, verdict_from_row


class ScoreCandidates:
    """A reward that fails leaves ``value`` None and says why; it never stops the run."""

    name = "reward"

    def __init__(self, reward: Reward) -> None:
        self.reward = reward

    @property
    def adds(self) -> Mapping[str, Any]:
        return features()["scores"]

    async def __call__(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        query = query_from_row(row)
        candidates = [candidate_from_row(candidate) for candidate in row["candidates"]]
        verdicts = [verdict_from_row(verdict) for verdict in row["verdicts"]]
        scores: list[Score] = []
        with row_boundary() as failure:
            scores = await self.reward.score(query, candidates, verdicts)
            if len(scores) != len(candidates):
                raise ValueError(f"{self.reward.name} gave {len(scores)} scores for {len(candidates)} candidates")
        if failure.error:
            scores = [Score(None, {"error": failure.message})] * len(candidates)
        return {"scores": [score_to_row(score) for score in scores]}
