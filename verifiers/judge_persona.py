"""How much of a persona a judge hears in an answer, 0 to 5; the markers of ``builders.analysis.voice`` ask nobody."""

from __future__ import annotations

from dataclasses import dataclass

from bestofn.builders.errors import ProviderError, raise_if_it_stops_the_run
from bestofn.builders.formats.judge_reply import fenced, object_schema, reply_object
from bestofn.builders.protocols import Sampler
from bestofn.builders.records import Persona, Request, Sampling
from bestofn.verifiers.judge_prompts import SYSTEM, prompt

SCHEMA = object_schema(
    reasoning={"type": "string"},
    score={"type": "integer", "minimum": 0, "maximum": 5},
    confidence={"type": "number", "minimum": 0, "maximum": 1},
)


@dataclass(frozen=True, slots=True)
class PersonaScore:
    """``score`` 0 to 5, or None with what went wrong in ``reasoning``; ``heard`` from the judge's ``min_score`` on."""

    score: int | None
    confidence: float
    reasoning: str
    model: str
    heard: bool


class PersonaJudge:
    """Scores the voice alone, not whether the answer is right. Temperature 0; answers lie in the journal."""

    def __init__(self, sampler: Sampler, persona: Persona, *, min_score: int = 3, max_tokens: int = 800) -> None:
        if not 0 <= min_score <= 5:
            raise ValueError(f"min_score is {min_score}; expected a score from 0 to 5")
        self.sampler, self.persona, self.min_score, self.max_tokens = sampler, persona, min_score, max_tokens

    async def score(self, text: str) -> PersonaScore:
        """Raises only what stops the run."""
        material = fenced(persona=self.persona.text, answer=text)
        request = Request(
            messages=(
                {"role": "system", "content": SYSTEM},
                {"role": "user", "content": f"{material}\n\n{prompt('persona').text}"},
            ),
            sampling=Sampling(temperature=0.0, max_tokens=self.max_tokens),
            schema=SCHEMA,
        )
        (answer,) = await self.sampler.draw(request)
        raise_if_it_stops_the_run(answer)
        model = self.sampler.model
        if isinstance(answer, ProviderError):
            return PersonaScore(None, 0.0, f"the judge gave no answer: {answer}", model, False)
        reply = reply_object(answer.text, SCHEMA, text)
        if isinstance(reply, str):
            return PersonaScore(None, 0.0, reply, model, False)
        return PersonaScore(
            reply["score"], reply["confidence"], reply["reasoning"], model, reply["score"] >= self.min_score
        )
