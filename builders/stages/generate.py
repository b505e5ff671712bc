"""Generate: the candidates of each query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from bestofn.builders.concurrency.tasks import run_together
from bestofn.builders.errors import ConfigError
from bestofn.builders.protocols import Archive, Sampler, Tools, Verifier
from bestofn.builders.records import (
    Candidate,
    Persona,
    Query,
    Request,
    Sampling,
    Verdict,
    paragraphs,
    with_system_text,
)
from bestofn.builders.sampling.cost import Plan
from bestofn.builders.schema import candidate_to_row, features, query_from_row
from bestofn.builders.stages import steps_form
from bestofn.builders.stages.adaptive import Adaptive, Stopped
from bestofn.builders.stages.prompt_variants import chosen
from bestofn.builders.stages.rollout import RolloutLimits, rollout
from bestofn.builders.stages.verify import verdict_of

Policy = Literal["keep", "retry", "drop"]


@dataclass(frozen=True, slots=True)
class Policies:
    """What becomes of an answer that was cut off, refused by the service's filter, or is empty.

    ``keep`` leaves it as it is (its ``stop_reason`` tells); ``retry`` draws once more, with twice the tokens when it
    was cut off and as a further attempt otherwise; ``drop`` puts an error in its place. What was done is kept in
    ``Candidate.detail["policy"]``; nothing is repeated more than once.
    """

    truncated: Policy = "keep"
    filtered: Policy = "keep"
    empty: Policy = "keep"


class Generate:
    """Adds ``candidates``: ``n`` samples a query, numbered from 0, and with ``greedy`` one more at temperature 0.

    The persona and the prompt variant stand in the system prompt of the request, never in the stored prompt.
    ``answer_form`` steps asks for JSON with a schema and stores the text it amounts to (see ``steps_form``).
    A candidate that could not be drawn holds its error. Raises what stops the run.
    """

    name = "generate"

    def __init__(
        self,
        *,
        sampler: Sampler | Archive,
        n: int = 4,
        sampling: Sampling = Sampling(),
        persona: Persona | None = None,
        system_prompt: str = "",
        variants: Sequence[str] = (),
        own_variants: Mapping[str, str] | None = None,
        greedy: bool = False,
        tools: Tools | None = None,
        rollout_limits: RolloutLimits = RolloutLimits(),
        policies: Policies = Policies(),
        adaptive: Adaptive | None = None,
        answer_form: Literal["text", "steps"] = "text",
        schema: Mapping[str, Any] | None = None,
    ) -> None:
        if n < 1:
            raise ConfigError(f"n is {n}; expected at least 1")
        self.sampler = sampler
        self.n = n
        self.sampling = sampling
        self.persona = persona
        self.system_prompt = system_prompt
        self.variants = list(chosen(variants, own_variants or {}).items())
        self.greedy = greedy
        self.tools = tools
        self.rollout_limits = rollout_limits
        self.policies = policies
        self.adaptive = adaptive
        self.answer_form = answer_form
        self.schema = steps_form.SCHEMA if answer_form == "steps" and schema is None else schema
        _refuse_identical_samples(n, sampling, len(self.variants))

    @property
    def adds(self) -> Mapping[str, Any]:
        return features()["candidates"]

    @property
    def plan(self) -> Plan:
        """How many requests the candidates of one query take, for the estimate."""
        count = self.n + self.greedy
        if not isinstance(self.sampler, Sampler):
            return Plan(self.sampler.model, count, 0, free=True)
        most = getattr(self.sampler, "max_n", 1)
        each = [len(range(position, self.n, len(self.variants))) for position in range(len(self.variants))]
        requests = sum(-(-samples // most) for samples in each) + self.greedy
        free, batch = getattr(self.sampler, "free", False), getattr(self.sampler, "batch", False)
        return Plan(self.sampler.model, count, requests, self.sampling.max_tokens, free, batch)

    def request_for(self, query: Query, variant: str | None = None) -> Request:
        """The request for ``query`` as it is sent, in the words of one prompt variant; None: the first."""
        variant = self.variants[0][0] if variant is None else variant
        before = (self.persona.text if self.persona else "", self.system_prompt)
        after = (dict(self.variants)[variant], steps_form.INSTRUCTION if self.answer_form == "steps" else "")
        return Request(
            messages=with_system_text(query.messages, paragraphs(before), paragraphs(after)),
            tools=query.tools,
            sampling=self.sampling,
            schema=self.schema,
        )

    async def __call__(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        query = query_from_row(row)
        if not isinstance(self.sampler, Sampler):
            candidates = self.sampler.answers_for(query)[: self.n]
        elif self.adaptive is not None:
            candidates = await self._until_enough(query, self.adaptive)
        else:
            candidates = await self.draw(query, range(self.n + self.greedy))
        return {"candidates": [candidate_to_row(candidate) for candidate in candidates]}

    async def draw(self, query: Query, indices: Sequence[int], attempt: int = 0) -> list[Candidate]:
        """The candidates numbered ``indices``; number ``n`` is the greedy one."""
        width = len(self.variants)
        asks = []
        for position, (variant, _) in enumerate(self.variants):
            numbers = [index for index in indices if index < self.n and index % width == position]
            if numbers:
                asks.append(self._samples(query, variant, numbers, attempt))
        if self.greedy and self.n in indices:
            asks.append(self._greedy(query, attempt))
        drawn = await run_together(asks)
        return sorted((candidate for part in drawn for candidate in part), key=lambda candidate: candidate.index)

    async def _until_enough(self, query: Query, rule: Adaptive) -> list[Candidate]:
        """Samples in growing numbers until ``rule`` is content; the greedy one stands beside them."""
        drawn: list[Candidate] = []
        verdicts: list[Verdict] = []
        stopped: Stopped = ""
        while not stopped and len(drawn) < self.n:
            upto = min(self.n, len(drawn) + (rule.step if drawn else rule.least))
            new = await self.draw(query, range(len(drawn), upto))
            verdicts += await run_together([_verdict_of(rule.verifier, query, candidate) for candidate in new])
            drawn += new
            stopped = rule.reason_to_stop(verdicts)
        if self.greedy:
            drawn += await self.draw(query, [self.n])
        told = {"n_used": len(verdicts), "n_fixed": min(rule.least, self.n), "stopped": stopped or "exhausted"}
        return [replace(candidate, detail={**candidate.detail, "adaptive": told}) for candidate in drawn]

    async def _samples(self, query: Query, variant: str, numbers: Sequence[int], attempt: int) -> list[Candidate]:
        """Candidates of one variant. Within its request the samples are numbered densely, so that one call asks all."""
        width = len(self.variants)
        request = self.request_for(query, variant)
        drawn = await self._roll(request, [number // width for number in numbers], attempt, world_seed(query, request))
        return [
            replace(candidate, index=number, variant=variant) for number, candidate in zip(numbers, drawn, strict=True)
        ]

    async def _greedy(self, query: Query, attempt: int) -> list[Candidate]:
        request = self.request_for(query)
        request = replace(request, sampling=replace(request.sampling, temperature=0.0, top_p=None))
        (candidate,) = await self._roll(request, [0], attempt, world_seed(query, request))
        return [replace(candidate, index=self.n, arm="greedy")]

    async def _roll(self, request: Request, indices: Sequence[int], attempt: int, world: int) -> list[Candidate]:
        drawn = await self._drawn(request, indices, attempt, world)
        drawn = await run_together([self._by_policy(request, candidate, world) for candidate in drawn])
        return [steps_form.in_words(one) for one in drawn] if self.answer_form == "steps" else drawn

    async def _drawn(self, request: Request, indices: Sequence[int], attempt: int, world: int) -> list[Candidate]:
        assert isinstance(self.sampler, Sampler)
        limits = self.rollout_limits
        return await rollout(self.sampler, request, self.tools, indices, attempt=attempt, limits=limits, seed=world)

    async def _by_policy(self, request: Request, candidate: Candidate, world: int) -> Candidate:
        """``candidate``, or what the policy for its flaw puts in its place."""
        flaw = flaw_of(candidate)
        policy: Policy = getattr(self.policies, flaw) if flaw else "keep"
        if policy == "keep":
            return candidate
        told = {**candidate.detail, "policy": {"flaw": flaw, "did": policy}}
        if policy == "drop":
            return replace(candidate, detail=told, error=f"dropped: the answer is {flaw} (policies.{flaw}=drop)")
        attempt = candidate.attempt
        if flaw == "truncated":
            if request.sampling.max_tokens is None:
                return candidate  # the model's own limit: more cannot be asked for
            more = 2 * request.sampling.max_tokens
            request = replace(request, sampling=replace(request.sampling, max_tokens=more))
        else:
            attempt = -1 - candidate.attempt  # attempts below zero are second tries by policy
        (again,) = await self._drawn(request, [candidate.index], attempt, world)
        told = {**again.detail, "policy": {"flaw": flaw, "did": policy, "still": flaw_of(again)}}
        return replace(
            again,
            attempt=candidate.attempt,
            detail=told,
            usage=candidate.usage + again.usage,
            seconds=candidate.seconds + again.seconds,
            cost_usd=_sum(candidate.cost_usd, again.cost_usd),
        )


def world_seed(query: Query, request: Request) -> int:
    """The seed of the tools' world: the query's own (``metadata["world_seed"]``), else that of the sampling.

    A query whose final state is known (``reference.state``) was written for the world 0 unless it names another.
    """
    own = query.metadata.get("world_seed")
    if own is not None:
        return int(own)
    return 0 if query.reference.state is not None else request.sampling.seed or 0


async def _verdict_of(verifier: Verifier, query: Query, candidate: Candidate) -> Verdict:
    if candidate.error:
        return Verdict("error", 1.0, candidate.error, verifier.name)
    return await verdict_of(verifier, query, candidate)


def flaw_of(candidate: Candidate) -> str:
    """``truncated``, ``filtered``, ``empty``, or "" for an answer that is none of them."""
    if candidate.error:
        return ""
    if candidate.stop_reason == "length":
        return "truncated"
    if candidate.stop_reason in ("content_filter", "refusal"):
        return "filtered"
    return "" if candidate.text.strip() or candidate.tool_calls else "empty"


def _refuse_identical_samples(n: int, sampling: Sampling, variants: int) -> None:
    if sampling.temperature == 0 and n > variants:
        raise ConfigError(
            f"sampling.temperature is 0 and n is {n}: the candidates would be identical, and a pair needs two that "
            "differ. Set sampling.temperature=1.0, or n=1, or keep the temperature for one candidate with "
            "stages.generate.greedy=true."
        )


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None and other is None else (one or 0.0) + (other or 0.0)
