"""Asks a model for a score from 0 to 5: how clearly an answer has the voice of a persona.

``bestofn voice`` uses this module if a judge is configured. ``builders.analysis.voice`` measures the voice with regular
expressions and needs no model.
"""

from __future__ import annotations

from dataclasses import dataclass

from bestofn.builders.formats.judge_reply import fenced, object_schema
from bestofn.builders.formats.judge_request import judge_replies, judge_request
from bestofn.builders.protocols import Sampler
from bestofn.builders.records import Persona
from bestofn.verifiers.judge.prompts import SYSTEM, prompt

SCHEMA = object_schema(
    reasoning={"type": "string"},
    score={"type": "integer", "minimum": 0, "maximum": 5},
    confidence={"type": "number", "minimum": 0, "maximum": 1},
)


@dataclass(frozen=True, slots=True)
class PersonaScore:
    """The score of one answer, from 0 to 5.

    If the reply could not be read, ``score`` is None and ``reasoning`` contains the problem.
    ``heard`` is true if the score is at least ``min_score`` of the judge.
    """

    score: int | None
    confidence: float
    reasoning: str
    model: str
    heard: bool


class PersonaJudge:
    """Scores the voice of an answer, not its correctness. The temperature is 0; the journal stores the replies."""

    def __init__(self, sampler: Sampler, persona: Persona, *, min_score: int = 3, max_tokens: int = 800) -> None:
        if not 0 <= min_score <= 5:
            raise ValueError(f"min_score is {min_score}; expected a score from 0 to 5")
        self.sampler, self.persona, self.min_score, self.max_tokens = sampler, persona, min_score, max_tokens

    async def score(self, text: str) -> PersonaScore:
        """Return the score of one answer. An unreadable reply raises no error."""
        material = fenced(persona=self.persona.text, answer=text)
        request = judge_request(SYSTEM, material, prompt("persona").text, SCHEMA, max_tokens=self.max_tokens)
        (reply,) = await judge_replies(self.sampler, request, [text])
        model = self.sampler.model
        if isinstance(reply, str):
            return PersonaScore(None, 0.0, reply, model, False)
        heard = reply["score"] >= self.min_score
        return PersonaScore(reply["score"], reply["confidence"], reply["reasoning"], model, heard)
