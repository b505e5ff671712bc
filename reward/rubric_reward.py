"""A reward from a rubric per query: the satisfied share of its weights. Configured by ``conf/reward/rubric.yaml``."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from bestofn.builders.formats.missing_scores import inapplicable
from bestofn.builders.protocols import PlannedCalls, Sampler
from bestofn.builders.records import Candidate, Query, Score, Verdict
from bestofn.verifiers.judge.rubric import RubricGrader, detail_of

NO_RUBRIC = "the query has no rubric; set dataset.columns.rubric, reward.file or reward.criteria"


class RubricReward:
    """Scores an answer with the share of the rubric's weights whose criteria are satisfied, 0…1.

    The score is 0 if a required criterion is not satisfied. If it is unknown whether a criterion is satisfied, the
    score is None, because a partial score cannot be compared with the scores of siblings. A criterion with ``check:
    verdict`` uses the verdict of the run. The parameters are those of ``RubricGrader``.
    """

    name = "rubric"
    read_files = ("file",)

    def __init__(
        self,
        judge: Sampler | None = None,
        criteria: Sequence[object] = (),
        file: str = "",
        per_request: int = 8,
        use_reference: bool = True,
        max_tokens: int = 1_500,
    ) -> None:
        self.grader = RubricGrader(judge, criteria, file, per_request, use_reference, max_tokens)

    def planned_calls(self, query: Query, candidates: int) -> Sequence[PlannedCalls]:
        """Return the planned calls of the judge."""
        return self.grader.planned_calls(query, candidates)

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        """Return the satisfied share of the rubric's weights for every candidate."""
        if not self.grader.rubric(query):
            return inapplicable(NO_RUBRIC, len(candidates))
        return list(
            await asyncio.gather(
                *(self._score(query, one, verdict) for one, verdict in zip(candidates, verdicts, strict=True))
            )
        )

    async def _score(self, query: Query, candidate: Candidate, verdict: Verdict) -> Score:
        if candidate.error:
            return Score(None)
        grade = await self.grader.grade(query, candidate, verdict)
        held, parts = grade.fulfilment, dict(detail_of(grade))
        if held.broken:
            return Score(0.0, parts)
        if held.unknown:
            reason = grade.problems[0] if grade.problems else f"not known: {held.unknown[0].text}"
            return Score(None, {**parts, "error": f"{len(held.unknown)} criteria have no state: {reason}"})
        return Score(float(held.share(unknown=False)), parts)
