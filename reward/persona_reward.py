"""Rewards for the voice of a persona, by patterns (``persona.yaml``) or by a judge (``persona_judge.yaml``)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

from bestofn.builders.protocols import PlannedCalls, Sampler
from bestofn.builders.records import Candidate, Persona, Query, Score, Verdict
from bestofn.verifiers.judge.persona import PersonaJudge

CODE = re.compile(r"```.*?```|\\boxed\{[^}]*\}", re.DOTALL)


class PersonaReward:
    """Counts the matches of the persona's markers, which are regular expressions, outside of code and ``\\boxed``.

    The score is the number of matches divided by ``strong``, at most 1. If a marker matches inside code or ``\\boxed``,
    0.5 is subtracted.
    """

    name = "persona"

    def __init__(self, persona: Persona | None = None, strong: int = 3) -> None:
        if strong < 1:
            raise ValueError(f"strong is {strong}; expected at least 1 match")
        self.strong = strong
        self.markers = [re.compile(marker, re.IGNORECASE) for marker in (persona.markers if persona else ())]

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        """Return one score per candidate. All values are None if the run has no persona with markers."""
        return [self._one(candidate) for candidate in candidates]

    def _one(self, candidate: Candidate) -> Score:
        if candidate.error or not self.markers:
            return Score(
                None,
                {} if self.markers else {"error": "the run has no persona with markers"},
            )
        prose = CODE.sub(" ", candidate.text)
        hits = sum(len(marker.findall(prose)) for marker in self.markers)
        inside = any(marker.search(part) for part in CODE.findall(candidate.text) for marker in self.markers)
        return Score(min(1.0, hits / self.strong) - 0.5 * inside, {"markers": hits, "leaked": inside})


# A reward from a judge model that grades the persona's voice. Configured by ``conf/reward/persona_judge.yaml``.


class PersonaJudgeReward:
    """Scores an answer with the grade of ``verifiers.judge.persona``, scaled from 0…5 to 0…1.

    ``parts["persona"]`` contains the grade, its confidence, the judge's reasoning and the judge's model. Its field
    ``heard`` is true if the grade is at least ``min_score``. These values become the columns ``persona_*`` of the
    candidates table.
    """

    name = "persona_judge"

    def __init__(
        self, judge: Sampler, persona: Persona | None = None, min_score: int = 3, max_tokens: int = 800
    ) -> None:
        self.judge, self.max_tokens = judge, max_tokens
        self._graded = PersonaJudge(judge, persona, min_score=min_score, max_tokens=max_tokens) if persona else None

    def planned_calls(self, query: Query, candidates: int) -> Sequence[PlannedCalls]:
        """Return the planned calls: one per candidate."""
        count = candidates if self._graded else 0
        return [PlannedCalls(self.judge, count, count, self.max_tokens)]

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        """Return one score per candidate. All values are None if the run has no persona."""
        return list(await asyncio.gather(*map(self._one, candidates)))

    async def _one(self, candidate: Candidate) -> Score:
        if self._graded is None:
            return Score(None, {"error": "the run has no persona"})
        if candidate.error:
            return Score(None)
        grade = await self._graded.score(candidate.text)
        if grade.score is None:
            return Score(None, {"error": grade.reasoning})
        persona = {
            "score": grade.score,
            "confidence": grade.confidence,
            "reasoning": grade.reasoning,
            "model": grade.model,
            "heard": grade.heard,
        }
        return Score(grade.score / 5, {"persona": persona})
