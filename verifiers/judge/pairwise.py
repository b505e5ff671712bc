"""Asks a model which of two answers is better, once in each order.

Two requests, with the answers swapped, remove the effect of the order in the prompt. ``builders.analysis.judge_report``
uses this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bestofn.builders.formats.judge_reply import fenced, object_schema
from bestofn.builders.formats.judge_request import judge_replies, judge_request
from bestofn.builders.protocols import Sampler
from bestofn.verifiers.judge.prompts import SYSTEM, prompt, with_rubric

Side = Literal["A", "B", "tie"]
SCHEMA = object_schema(
    reasoning={"type": "string"},
    winner={"type": "string", "enum": ["A", "B", "tie"]},
    confidence={"type": "number", "minimum": 0, "maximum": 1},
)
_SWAPPED: dict[Side, Side] = {"A": "B", "B": "A", "tie": "tie"}


@dataclass(frozen=True, slots=True)
class Preference:
    """The winners of one comparison in both orders. "A" is the argument ``a`` of ``PairwiseJudge.compare``.

    ``first_order`` is the winner when A was shown first; ``second_order`` is the winner when B was shown first.
    None means that the reply could not be read. ``reasoning`` is the reasoning of the first reply.
    """

    first_order: Side | None
    second_order: Side | None
    reasoning: str = ""

    @property
    def winner(self) -> Side | None:
        """The winner if both orders agree, ``tie`` if they differ, None if a reply could not be read."""
        if self.first_order is None or self.second_order is None:
            return None
        return self.first_order if self.first_order == self.second_order else "tie"


class PairwiseJudge:
    """Compares two answers to the same question with a model. ``rubric`` is appended to the prompt.

    ``prompt`` is the name of a judge prompt or the path of a file (see ``prompts.prompt``).
    """

    def __init__(
        self, sampler: Sampler, *, prompt: str = "pairwise", rubric: str = "", max_tokens: int = 1_500
    ) -> None:
        self.sampler, self.prompt, self.rubric, self.max_tokens = sampler, prompt, rubric, max_tokens

    async def compare(self, question: str, a: str, b: str) -> Preference:
        """Ask the model in both orders and return its preference. An unreadable reply raises no error."""
        a_first, reasoning = await self._winner(question, a, b)
        b_first, _ = await self._winner(question, b, a)
        return Preference(a_first, _SWAPPED[b_first] if b_first else None, reasoning)

    async def _winner(self, question: str, first: str, second: str) -> tuple[Side | None, str]:
        """Return the winner by position, and the reasoning. If the reply cannot be read, return None and the reason."""
        material = fenced(question=question, answer_A=first, answer_B=second)
        instruction = with_rubric(prompt(self.prompt).text, self.rubric)
        request = judge_request(SYSTEM, material, instruction, SCHEMA, max_tokens=self.max_tokens)
        (reply,) = await judge_replies(self.sampler, request, [first, second])
        return (None, reply) if isinstance(reply, str) else (reply["winner"], reply["reasoning"])
