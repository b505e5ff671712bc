"""Estimates the calls and the cost of a run before it starts. ``bestofn build dry_run=true`` prints the estimate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bestofn.builders.protocols import PlannedCalls, Sampler, planned_calls
from bestofn.builders.records import Query, Usage, content_text
from bestofn.builders.run.pipeline import Run
from bestofn.builders.sampling.cost import (
    CHARACTERS_PER_TOKEN,
    EXPECTED_TOKENS,
    Estimate,
    FurtherCalls,
    Ledger,
    estimate,
)
from bestofn.builders.stages.generate import Generate
from bestofn.builders.stages.score import ScoreCandidates

INSTRUCTION_TOKENS = 300  # assumed length of the instruction of a judge


@dataclass
class _Sum:
    """The sum of the planned calls of one role with one model."""

    sampler: Sampler
    expected: int = 0
    most: int = 0
    prompt: tuple[float, float] = (0.0, 0.0)
    completion: tuple[float, float] = (0.0, 0.0)

    def add(self, calls: PlannedCalls, question_tokens: float) -> None:
        """Add the calls for one query. Each prompt has the question, one answer and an instruction."""
        prompt = question_tokens + EXPECTED_TOKENS + INSTRUCTION_TOKENS
        longest = calls.max_tokens or 4 * EXPECTED_TOKENS
        self.expected += calls.expected
        self.most += calls.most
        self.prompt = (self.prompt[0] + prompt * calls.expected, self.prompt[1] + prompt * calls.most)
        expected = min(EXPECTED_TOKENS, longest) * calls.expected
        self.completion = (self.completion[0] + expected, self.completion[1] + longest * calls.most)


class Forecast:
    """Collects the requests that the queries of a run need. ``add`` each query, then read ``estimate``."""

    def __init__(self, run: Run, generate: Generate) -> None:
        self._generate, self._ledger = generate, run.ledger
        rewards = [stage.reward for stage, _ in run.stages if isinstance(stage, ScoreCandidates)]
        self._roles = {"tools": generate, "verifier": run.verifier, "reward": rewards[0] if rewards else None}
        self._sums: dict[tuple[str, int], _Sum] = {}
        self._queries = self._characters = 0

    def add(self, query: Query) -> None:
        """Count the requests for ``query``."""
        request = self._generate.request_builder.request(query)
        self._queries += 1
        self._characters += sum(len(content_text(message.get("content"))) for message in request.messages)
        question = sum(len(content_text(message.get("content"))) for message in query.messages)
        recorded = self._generate.recorded_answers(query)
        candidates = self._generate.plan.n if recorded is None else len(recorded)
        for role, caller in self._roles.items():
            for calls in planned_calls(caller, query, candidates):
                if calls.most:
                    total = self._sums.setdefault((role, id(calls.sampler)), _Sum(calls.sampler))
                    total.add(calls, question / CHARACTERS_PER_TOKEN)

    def estimate(self) -> Estimate:
        """Return the estimate for all queries that were added."""
        return estimate(
            self._generate,
            queries=self._queries,
            prompt_characters=self._characters,
            ledger=self._ledger,
            further=list(_further(self._sums.items(), self._ledger)),
        )


def _further(sums: Iterable[tuple[tuple[str, int], _Sum]], ledger: Ledger) -> Iterable[FurtherCalls]:
    for (role, _), total in sums:
        sampler = total.sampler
        price = ledger.price_of(sampler.model, free=sampler.free)
        prompt = (round(total.prompt[0]), round(total.prompt[1]))
        completion = (round(total.completion[0]), round(total.completion[1]))
        usd = None
        if price is not None:
            usd = (
                price.of(Usage(prompt[0], completion[0]), answers=total.expected, batch=sampler.batch),
                price.of(Usage(prompt[1], completion[1]), answers=total.most, batch=sampler.batch),
            )
        yield FurtherCalls(role, sampler.model, total.expected, total.most, prompt, completion, usd)
