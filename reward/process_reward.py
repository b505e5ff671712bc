"""A reward for the steps of an answer: a judge model grades each step, and the grades are combined into one value.

Configured by ``conf/reward/process.yaml``. The training view ``prm`` is built from the ``parts`` of these scores.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Sequence
from typing import Literal

from bestofn.builders.formats.judge_reply import fenced, object_schema
from bestofn.builders.protocols import PlannedCalls, Sampler
from bestofn.builders.records import Candidate, Query, Score, Verdict
from bestofn.reward import judging

Aggregate = Literal["min", "prod", "last", "mean"]
STEP = re.compile(r"(?m)^(?=(?:#+\s*)?(?:\*\*)?step\s*\d+)", re.IGNORECASE)
SCHEMA = object_schema(
    reasoning={"type": "string"},
    steps={"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 1}},
)


class ProcessReward:
    """Asks a judge for the probability that each step is right, and combines the probabilities with ``aggregate``.

    An answer is split at headings such as "Step 1". If it has fewer than two such headings, it is split at blank lines,
    and a single paragraph at line breaks. ``parts["steps"]`` contains the text and the probability of each step. If the
    judge does not reply with one probability per step, the value is None.
    """

    name = "process"

    def __init__(self, judge: Sampler, aggregate: Aggregate = "min", max_tokens: int = 2048) -> None:
        self.judge, self.max_tokens = judge, max_tokens
        self.aggregate: Aggregate = aggregate

    def planned_calls(self, query: Query, candidates: int) -> Sequence[PlannedCalls]:
        """Return the planned calls: one per candidate."""
        count = candidates
        return [PlannedCalls(self.judge, count, count, self.max_tokens)]

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        """Return one score per candidate: the probabilities that its steps are right, combined into one number."""
        steps = [[] if one.error else steps_of(one.text) for one in candidates]
        found = await self.probabilities(query, steps)
        return [
            Score(None) if one.error else graded_steps(parts, chances, self.aggregate)
            for one, parts, chances in zip(candidates, steps, found, strict=True)
        ]

    async def probabilities(self, query: Query, answers: Sequence[Sequence[str]]) -> list[list[float] | str]:
        """Return the probability of each step per answer, or the reason why there is none."""
        return list(await asyncio.gather(*(self._chances(query, steps) for steps in answers)))

    async def _chances(self, query: Query, steps: Sequence[str]) -> list[float] | str:
        if not steps:
            return "the answer has no text to split into steps"
        quoted = {f"step_{place}": text for place, text in enumerate(steps, start=1)}
        material = fenced(question=judging.conversation_text(query), **quoted)
        instruction = (
            f"For each of the {len(steps)} steps give the chance from 0 to 1 that it is right, given the steps before "
            'it. First reason briefly. Reply: {"reasoning": "…", "steps": [one number a step]}'
        )
        (reply,) = await judging.ask(self.judge, material, instruction, SCHEMA, max_tokens=self.max_tokens)
        if isinstance(reply, str):
            return reply
        values = [judging.number(value, 0, 1) for value in reply.get("steps") or ()]
        chances = [value for value in values if value is not None]
        if len(values) != len(steps) or len(chances) != len(steps):
            return f"the judge gave {len(chances)} probabilities for {len(steps)} steps"
        return chances


def graded_steps(steps: Sequence[str], chances: Sequence[float] | str, aggregate: Aggregate) -> Score:
    """Return the score of an answer.

    ``chances`` are the probabilities of its steps, or the reason why they are missing.
    """
    if isinstance(chances, str):
        return Score(None, {"error": chances})
    graded = [{"text": text, "score": value} for text, value in zip(steps, chances, strict=True)]
    return Score(fold(chances, aggregate), {"steps": graded})


def steps_of(text: str) -> list[str]:
    """Split ``text`` into steps: at headings such as "Step 1" if there are at least two, otherwise at blank lines.

    A text of one paragraph is split at line breaks.
    """
    by_heading = [part.strip() for part in STEP.split(text) if part.strip()]
    if len(STEP.findall(text)) >= 2:
        return by_heading
    paragraphs = [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]
    return paragraphs if len(paragraphs) > 1 else [line.strip() for line in text.splitlines() if line.strip()]


def fold(chances: Sequence[float], aggregate: Aggregate) -> float:
    """Combine the probabilities of the steps into one value. Raises ``ValueError`` if ``chances`` is empty."""
    if not chances:
        raise ValueError("chances is empty; expected the probability of at least one step")
    if aggregate == "min":
        return min(chances)
    if aggregate == "prod":
        return math.prod(chances)
    return chances[-1] if aggregate == "last" else math.fsum(chances) / len(chances)
