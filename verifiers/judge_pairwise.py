"""Which of two answers is better: asked in both orders, so that the place in the prompt decides nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bestofn.builders.errors import ProviderError, raise_if_it_stops_the_run
from bestofn.builders.formats.judge_reply import fenced, object_schema, reply_object
from bestofn.builders.protocols import Sampler
from bestofn.builders.records import Request, Sampling
from bestofn.verifiers.judge_prompts import SYSTEM, prompt

Side = Literal["A", "B", "tie"]
SCHEMA = object_schema(
    reasoning={"type": "string"},
    winner={"type": "string", "enum": ["A", "B", "tie"]},
    confidence={"type": "number", "minimum": 0, "maximum": 1},
)
_SWAPPED: dict[Side, Side] = {"A": "B", "B": "A", "tie": "tie"}


@dataclass(frozen=True, slots=True)
class Preference:
    """Both orders' findings, in the names of the texts (A is the first argument, wherever it stood).

    ``first_order``: A was shown first; ``second_order``: B was. None: that reply could not be read.
    """

    first_order: Side | None
    second_order: Side | None
    reasoning: str = ""

    @property
    def winner(self) -> Side | None:
        """What both orders say; a verdict that changes with the order is a tie; None when one is missing."""
        if self.first_order is None or self.second_order is None:
            return None
        return self.first_order if self.first_order == self.second_order else "tie"


class PairwiseJudge:
    """``compare(question, a, b)`` by a model, twice."""

    def __init__(
        self, sampler: Sampler, *, prompt: str = "pairwise", rubric: str = "", max_tokens: int = 1_500
    ) -> None:
        self.sampler, self.prompt, self.rubric, self.max_tokens = sampler, prompt, rubric, max_tokens

    async def compare(self, question: str, a: str, b: str) -> Preference:
        """Raises only what stops the run; a reply that cannot be read is None in the preference."""
        straight, why = await self._one(question, a, b)
        turned, _ = await self._one(question, b, a)
        return Preference(straight, _SWAPPED[turned] if turned else None, why)

    async def _one(self, question: str, first: str, second: str) -> tuple[Side | None, str]:
        material = fenced(question=question, answer_A=first, answer_B=second)
        instruction = prompt(self.prompt).text + (f"\n\nJudge by this:\n{self.rubric}" if self.rubric else "")
        request = Request(
            messages=(
                {"role": "system", "content": SYSTEM},
                {"role": "user", "content": f"{material}\n\n{instruction}"},
            ),
            sampling=Sampling(temperature=0.0, max_tokens=self.max_tokens),
            schema=SCHEMA,
        )
        (answer,) = await self.sampler.draw(request)
        raise_if_it_stops_the_run(answer)
        if isinstance(answer, ProviderError):
            return None, str(answer)
        reply = reply_object(answer.text, SCHEMA, first, second)
        return (None, reply) if isinstance(reply, str) else (reply["winner"], reply["reasoning"])
