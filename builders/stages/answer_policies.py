"""Decides whether truncated, filtered or empty responses are kept, retried or dropped.

Used by ``builders.stages.generate``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bestofn.builders.records import Candidate, Request

Policy = Literal["keep", "retry", "drop"]
Flaw = Literal["", "truncated", "filtered", "empty"]
Sample = Callable[[Request, Sequence[int], int], Awaitable[list[Candidate]]]
"""A function that samples candidates: (request, sample indices, attempt) -> candidates."""


@dataclass(frozen=True, slots=True)
class AnswerPolicies:
    """One policy per flaw of a response: ``keep`` it, ``retry`` the request once, or ``drop`` it.

    ``keep`` changes nothing; the candidate's ``stop_reason`` shows the flaw. ``retry`` samples again. After a truncated
    response, the retry has twice the ``max_tokens``; after any other flaw, it has another attempt number. ``drop`` sets
    ``Candidate.error``. After a retry or a drop, ``Candidate.detail["policy"]`` records the flaw and the policy.
    """

    truncated: Policy = "keep"
    filtered: Policy = "keep"
    empty: Policy = "keep"

    @property
    def may_change(self) -> bool:
        """Whether there is a policy other than ``keep``, so that ``apply`` may change a response."""
        return {self.truncated, self.filtered, self.empty} != {"keep"}

    async def apply(self, candidate: Candidate, request: Request, sample: Sample) -> Candidate:
        """Apply the policy for the flaw of ``candidate``. Returns it unchanged, sampled again, or with an error."""
        flaw = flaw_of(candidate)
        policy = self._policy(flaw)
        if policy == "drop":
            return _dropped(candidate, flaw)
        if policy == "keep" or (flaw == "truncated" and request.sampling.max_tokens is None):
            return candidate  # max_tokens is not set, so it cannot be doubled
        request, attempt = _retry(request, candidate.attempt, flaw)
        (retried,) = await sample(request, [candidate.index], attempt)
        return _with_both_costs(candidate, retried, flaw)

    def _policy(self, flaw: Flaw) -> Policy:
        match flaw:
            case "truncated":
                return self.truncated
            case "filtered":
                return self.filtered
            case "empty":
                return self.empty
            case _:
                return "keep"


def flaw_of(candidate: Candidate) -> Flaw:
    """Return the flaw of a response; "" if the response has no flaw or the candidate has an error."""
    if candidate.error:
        return ""
    if candidate.stop_reason == "length":
        return "truncated"
    if candidate.stop_reason in ("content_filter", "refusal"):
        return "filtered"
    return "" if candidate.text.strip() or candidate.tool_calls else "empty"


def _retry(request: Request, attempt: int, flaw: Flaw) -> tuple[Request, int]:
    """Return (request, attempt number) for the retry of a response with this flaw."""
    if flaw == "truncated" and request.sampling.max_tokens is not None:
        sampling = replace(request.sampling, max_tokens=2 * request.sampling.max_tokens)
        return replace(request, sampling=sampling), attempt
    return request, -1 - attempt  # a retry by policy has a negative attempt number; regeneration uses positive ones


def _dropped(candidate: Candidate, flaw: Flaw) -> Candidate:
    detail = {**candidate.detail, "policy": {"flaw": flaw, "did": "drop"}}
    return replace(candidate, detail=detail, error=f"dropped: the answer is {flaw} (policies.{flaw}=drop)")


def _with_both_costs(first: Candidate, retried: Candidate, flaw: Flaw) -> Candidate:
    """Return ``retried`` with the usage, time and cost of both samples, and the attempt number of ``first``."""
    policy = {"flaw": flaw, "did": "retry", "still": flaw_of(retried)}
    costs = [cost for cost in (first.cost_usd, retried.cost_usd) if cost is not None]
    return replace(
        retried,
        attempt=first.attempt,
        detail={**retried.detail, "policy": policy},
        usage=first.usage + retried.usage,
        seconds=first.seconds + retried.seconds,
        cost_usd=sum(costs) if costs else None,
    )
