"""What happens to a response that is truncated, filtered or empty. Used by ``builders.stages.generate``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bestofn.builders.records import Candidate, Request

Policy = Literal["keep", "retry", "drop"]
Flaw = Literal["", "truncated", "filtered", "empty"]
Sample = Callable[[Request, Sequence[int], int], Awaitable[list[Candidate]]]
"""(request, sample indices, attempt) -> the candidates."""


@dataclass(frozen=True, slots=True)
class AnswerPolicies:
    """The policy per flaw: ``keep`` the response, ``retry`` it once, or ``drop`` it.

    ``keep`` changes nothing; the candidate's ``stop_reason`` shows the flaw. ``retry`` samples once more: with twice
    the ``max_tokens`` if the response was truncated, as a further attempt otherwise. ``drop`` sets the error.
    What was done is recorded in ``Candidate.detail["policy"]``.
    """

    truncated: Policy = "keep"
    filtered: Policy = "keep"
    empty: Policy = "keep"

    async def apply(self, candidate: Candidate, request: Request, sample: Sample) -> Candidate:
        """``candidate``, or what the policy for its flaw puts in its place."""
        flaw = flaw_of(candidate)
        policy = self._policy(flaw)
        if policy == "drop":
            return _dropped(candidate, flaw)
        if policy == "keep" or (flaw == "truncated" and request.sampling.max_tokens is None):
            return candidate  # without max_tokens the model itself ended the response: no larger limit can be set
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
    """The flaw of a response; "" if it has none, or if the candidate is an error."""
    if candidate.error:
        return ""
    if candidate.stop_reason == "length":
        return "truncated"
    if candidate.stop_reason in ("content_filter", "refusal"):
        return "filtered"
    return "" if candidate.text.strip() or candidate.tool_calls else "empty"


def _retry(request: Request, attempt: int, flaw: Flaw) -> tuple[Request, int]:
    """The request and the attempt number of a retry."""
    if flaw == "truncated" and request.sampling.max_tokens is not None:
        sampling = replace(request.sampling, max_tokens=2 * request.sampling.max_tokens)
        return replace(request, sampling=sampling), attempt
    return request, -1 - attempt  # negative attempts are retries by policy: regeneration counts upwards


def _dropped(candidate: Candidate, flaw: Flaw) -> Candidate:
    detail = {**candidate.detail, "policy": {"flaw": flaw, "did": "drop"}}
    return replace(candidate, detail=detail, error=f"dropped: the answer is {flaw} (policies.{flaw}=drop)")


def _with_both_costs(first: Candidate, retried: Candidate, flaw: Flaw) -> Candidate:
    """``retried`` under the attempt of ``first``, with the usage, time and cost of both."""
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
