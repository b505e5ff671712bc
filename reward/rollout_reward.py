"""A reward for the steps of an answer, estimated by Monte Carlo: how often continuations after a step pass.

Math-Shepherd (arXiv:2312.08935) labels steps in this way. Configured by ``conf/reward/rollouts.yaml``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from bestofn.builders.errors import ConfigError, ProviderError, raise_if_it_stops_the_run, row_boundary
from bestofn.builders.protocols import PlannedCalls, Sampler, Verifier, planned_calls
from bestofn.builders.records import Candidate, Completion, Message, Query, Request, Sampling, Score, Verdict
from bestofn.reward.process_reward import Aggregate, graded_steps, steps_of

ASK = (
    "Continue your solution exactly where it stops. Do not repeat what you have written, and do not correct it. End "
    "with the final answer in the form that the question asks for."
)
EXPECTED_STEPS = 5  # for the estimate of the cost
NO_VERDICT = "the answer has no verdict of pass or fail"


class Estimate(NamedTuple):
    """The estimate for one step.

    ``share`` is the share of continuations that pass, or a text that says why the share is unknown. ``failed`` is the
    first error of a request, or "".
    """

    share: float | str
    failed: str


class RolloutReward:
    """Scores a step by sampling ``samples`` continuations after it.

    The value is the share that passes the ``verifier``.

    ``continue_by`` says how the model gets the steps. ``request``: as an answer, followed by a request to continue.
    ``prefix``: as the beginning of its own answer. For ``prefix``, the server must support ``continue_final_message``,
    as vLLM and models in this process do. The last step is scored with the verdict on the answer. Continuations without
    a verdict of pass or fail do not count. If no continuation of a step counts, the value is None. If requests failed,
    ``parts["problem"]`` names the first error, and the next run samples these continuations again.
    """

    name = "rollouts"

    def __init__(
        self,
        sampler: Sampler,
        verifier: Verifier,
        samples: int = 8,
        aggregate: Aggregate = "min",
        continue_by: Literal["request", "prefix"] = "request",
        temperature: float = 1.0,
        max_tokens: int = 1024,
        seed: int | None = 0,
    ) -> None:
        if samples < 1:
            raise ConfigError(f"samples is {samples}; expected at least 1")
        self.sampler, self.verifier, self.samples = sampler, verifier, samples
        self.aggregate: Aggregate = aggregate
        self.continue_by, self.max_tokens = continue_by, max_tokens
        extra = {"continue_final_message": True, "add_generation_prompt": False} if continue_by == "prefix" else {}
        self.sampling = Sampling(temperature=temperature, max_tokens=max_tokens, seed=seed, extra=extra)

    def planned_calls(self, query: Query, candidates: int) -> Sequence[PlannedCalls]:
        """Return the planned calls, for answers of ``EXPECTED_STEPS`` steps.

        Each step except the last needs ``samples`` calls. The calls of the verifier are added."""
        count = candidates * self.samples * (EXPECTED_STEPS - 1)
        calls = PlannedCalls(self.sampler, count, 4 * count, self.max_tokens)
        return [calls, *planned_calls(self.verifier, query, count)]

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        """Return one score per candidate: the values of its steps, combined into one number."""
        judged = zip(candidates, verdicts, strict=True)
        return list(await asyncio.gather(*(self._score(query, one, verdict) for one, verdict in judged)))

    async def _score(self, query: Query, candidate: Candidate, verdict: Verdict) -> Score:
        steps = [] if candidate.error or candidate.tool_calls else steps_of(candidate.text)
        if not steps:
            return Score(None, {} if candidate.error else {"error": "the answer has no text to split into steps"})
        prefixes = [_prefix(candidate.text, steps, count) for count in range(1, len(steps))]
        estimates = await asyncio.gather(*(self._estimate(query, candidate, prefix) for prefix in prefixes))
        last = {"pass": 1.0, "fail": 0.0}.get(verdict.outcome)
        shares = [*(one.share for one in estimates), last if last is not None else NO_VERDICT]
        missing = next((share for share in shares if isinstance(share, str)), None)
        score = graded_steps(
            steps, missing or [share for share in shares if not isinstance(share, str)], self.aggregate
        )
        failed = next((one.failed for one in estimates if one.failed), "")
        return replace(score, parts={**score.parts, "problem": failed}) if failed else score

    async def _estimate(self, query: Query, candidate: Candidate, prefix: str) -> Estimate:
        """Sample continuations of ``prefix`` and verify them."""
        messages: list[Message] = [*query.messages, {"role": "assistant", "content": prefix}]
        if self.continue_by == "request":
            messages.append({"role": "user", "content": ASK})
        drawn = await self.sampler.draw(Request(tuple(messages), (), self.sampling), range(self.samples))
        for one in drawn:
            raise_if_it_stops_the_run(one)
        outcomes = await asyncio.gather(*(self._outcome(query, candidate, prefix, one) for one in drawn))
        errors = [one for one in drawn if isinstance(one, ProviderError)]
        failed = (
            f"{len(errors)} of {self.samples} continuations failed: {type(errors[0]).__name__}: {errors[0]}"
            if errors
            else ""
        )
        decided = [outcome == "pass" for outcome in outcomes if outcome in ("pass", "fail")]
        if decided:
            return Estimate(sum(decided) / len(decided), failed)
        listed = ", ".join(sorted(set(outcomes)))
        return Estimate(f"no continuation of {self.samples} has a verdict of pass or fail ({listed})", failed)

    async def _outcome(self, query: Query, candidate: Candidate, prefix: str, drawn: Completion | ProviderError) -> str:
        """Return the outcome of the answer that consists of ``prefix`` and a continuation."""
        if isinstance(drawn, ProviderError):
            return "error"
        joint = "" if self.continue_by == "prefix" else "\n\n"
        message = {"role": "assistant", "content": f"{prefix}{joint}{drawn.text}"}
        whole = replace(candidate, messages=(message,), stop_reason=drawn.stop_reason, detail={})
        with row_boundary():
            return (await self.verifier.verify(query, whole)).outcome
        return "error"


def _prefix(text: str, steps: Sequence[str], count: int) -> str:
    """Return the beginning of ``text`` up to the end of step ``count``, with the white space that follows it."""
    end = 0
    for step in steps[:count]:
        end = text.index(step, end) + len(step)
    rest = text[end:]
    return text[: end + len(rest) - len(rest.lstrip())]
