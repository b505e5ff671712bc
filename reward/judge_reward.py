"""A judge grades each answer by itself against a rubric."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from bestofn.builders.errors import ConfigError
from bestofn.builders.formats.judge_reply import candidate_text, fenced, object_schema
from bestofn.builders.protocols import Sampler
from bestofn.builders.records import Candidate, Query, Score, Verdict
from bestofn.reward import judging
from bestofn.reward.rubrics import rubric_text

SCHEMA = object_schema(
    reasoning={"type": "string"},
    cannot_judge={"type": "boolean"},
    score={"type": "integer", "minimum": 1, "maximum": 10},
)


class JudgeReward:
    """The mean grade of ``samples`` replies, scaled from 1…10 to 0…1.

    ``rubric`` is the name of a shipped rubric or a sentence of your own. With ``use_reference`` the judge sees the
    reference answer. Replies that cannot be read, or that say ``cannot_judge``, do not count; when none counts the
    candidate has no value and ``parts`` says why. ``max_tokens`` bounds each reply.
    """

    name = "judge"

    def __init__(
        self,
        judge: Sampler,
        rubric: str = "helpfulness",
        use_reference: bool = False,
        samples: int = 1,
        temperature: float = 0.0,
        max_tokens: int = 1024,
    ) -> None:
        if samples < 1 or (samples > 1 and temperature == 0):
            raise ConfigError(
                f"samples={samples}, temperature={temperature}; several samples need a temperature above 0"
            )
        self.judge, self.rubric, self.use_reference = judge, rubric_text(rubric), use_reference
        self.samples, self.temperature, self.max_tokens = samples, temperature, max_tokens

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        return list(await asyncio.gather(*(self._one(query, candidate) for candidate in candidates)))

    async def _one(self, query: Query, candidate: Candidate) -> Score:
        if candidate.error:
            return Score(None)
        quoted = {"question": judging.conversation_text(query)}
        if self.use_reference and query.reference.answer:
            quoted["reference"] = query.reference.answer
        material = fenced(**quoted, answer=candidate_text(candidate))
        instruction = (
            f"Grade the answer.\n\nWhat to look at: {self.rubric}\n\n"
            "1: fails entirely. 3: mostly fails. 5: half of what is needed. 7: good, with a flaw. 9: very good. "
            "10: nothing to better.\nFirst reason briefly, then grade. Set cannot_judge when you cannot know.\n"
            'Reply: {"reasoning": "…", "cannot_judge": false, "score": 1 to 10}'
        )
        request = judging.request_for(instruction, material, SCHEMA, self.temperature, self.max_tokens)
        return graded(await judging.replies(self.judge, request, self.samples))


def graded(replies: Sequence[object]) -> Score:
    """The mean of the readable grades from 1 to 10, scaled to 0…1."""
    grades, reasons, troubles = [], [], []
    for reply in replies:
        grade = judging.number(reply.get("score"), 1, 10) if isinstance(reply, dict) else None
        if not isinstance(reply, dict):
            troubles.append(str(reply))
        elif reply.get("cannot_judge") is True:
            troubles.append(f"the judge could not judge: {reply.get('reasoning', '')}")
        elif grade is None:
            troubles.append(f"the judge's score is {reply.get('score')!r}; expected a number from 1 to 10")
        else:
            grades.append(grade)
            reasons.append(str(reply.get("reasoning", "")))
    if not grades:
        return Score(None, {"error": "; ".join(troubles)})
    parts = {"grades": grades, "reasoning": reasons[0]} | ({"unread": len(troubles)} if troubles else {})
    return Score((sum(grades) / len(grades) - 1) / 9, parts)
