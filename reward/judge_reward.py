"""A reward from a judge model that grades each answer separately. Configured by ``conf/reward/judge.yaml``."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from bestofn.builders.errors import ConfigError, names_failed_request
from bestofn.builders.formats.judge_reply import candidate_text, fenced, object_schema
from bestofn.builders.protocols import PlannedCalls, Sampler
from bestofn.builders.records import Candidate, JsonObject, Query, Score, Verdict
from bestofn.reward import judging
from bestofn.reward.judging import rubric_text

SCHEMA = object_schema(
    reasoning={"type": "string"},
    cannot_judge={"type": "boolean"},
    score={"type": "integer", "minimum": 1, "maximum": 10},
)


class JudgeReward:
    """Scores an answer with the mean grade of ``samples`` replies, scaled from 1…10 to 0…1.

    ``rubric`` is the name of a rubric in ``reward.judging``, or your own rubric as a sentence. With ``use_reference``,
    the judge also sees the reference answer. Replies that are invalid or that set ``cannot_judge`` are ignored. If all
    replies are ignored, the value is None and ``parts["error"]`` contains the reason. ``max_tokens`` limits each reply.
    Raises ``ConfigError`` for more than one sample at temperature 0.
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
                f"samples is {samples} and temperature is {temperature}. Expected at least 1 sample. Several "
                "samples need a temperature above 0."
            )
        self.judge, self.rubric, self.use_reference = judge, rubric_text(rubric), use_reference
        self.samples, self.temperature, self.max_tokens = samples, temperature, max_tokens

    def planned_calls(self, query: Query, candidates: int) -> Sequence[PlannedCalls]:
        """Return the planned calls: ``samples`` per candidate."""
        count = self.samples * candidates
        return [PlannedCalls(self.judge, count, count, self.max_tokens)]

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        """Return the mean grade of every candidate. The value is None if no reply contains a valid grade."""
        return list(await asyncio.gather(*(self._grade(query, candidate) for candidate in candidates)))

    async def _grade(self, query: Query, candidate: Candidate) -> Score:
        if candidate.error:
            return Score(None)
        quoted = {"question": judging.conversation_text(query)}
        if self.use_reference and query.reference.answer:
            quoted["reference"] = query.reference.answer
        instruction = (
            f"Grade the answer.\n\nWhat to look at: {self.rubric}\n\n"
            "1: fails entirely. 3: mostly fails. 5: half of what is needed. 7: good, with a flaw. 9: very good. "
            "10: nothing to better.\nFirst reason briefly, then grade. Set cannot_judge when you cannot know.\n"
            'Reply: {"reasoning": "…", "cannot_judge": false, "score": 1 to 10}'
        )
        replies = await judging.ask(
            self.judge,
            fenced(**quoted, answer=candidate_text(candidate)),
            instruction,
            SCHEMA,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            samples=self.samples,
        )
        return mean_grade(replies)


def mean_grade(replies: Sequence[JsonObject | str]) -> Score:
    """Return the mean of the valid grades, scaled from 1…10 to 0…1.

    ``parts["unread"]`` is the number of replies without a valid grade.
    """
    grades: list[float] = []
    reasons: list[str] = []
    problems: list[str] = []
    for reply in replies:
        grade, text = _grade_of(reply)
        if grade is None:
            problems.append(text)
        else:
            grades.append(grade)
            reasons.append(text)
    if not grades:
        return Score(None, {"error": "; ".join(problems)})
    parts: dict[str, object] = {"grades": grades, "reasoning": reasons[0]}
    parts |= {"unread": len(problems)} if problems else {}
    if failed := next(filter(names_failed_request, problems), None):
        parts["problem"] = failed
    return Score((sum(grades) / len(grades) - 1) / 9, parts)


def _grade_of(reply: JsonObject | str) -> tuple[float | None, str]:
    """Return the grade and its reasoning, or None and the reason why the reply has no grade."""
    if isinstance(reply, str):
        return None, reply
    if reply.get("cannot_judge") is True:
        return None, f"the judge replied that it cannot judge: {reply.get('reasoning', '')}"
    grade = judging.number(reply.get("score"), 1, 10)
    if grade is None:
        return None, f"the judge's score is {reply.get('score')!r}; expected a number from 1 to 10"
    return grade, str(reply.get("reasoning", ""))
