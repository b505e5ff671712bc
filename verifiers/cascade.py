"""Asks a second verifier if the first verdict is not conclusive.

``conf/verifier/with_judge.yaml`` builds this verifier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from bestofn.builders.protocols import PlannedCalls, Verifier, planned_calls, verified_by
from bestofn.builders.records import Candidate, JsonObject, Query, Verdict

GATE = 0.4
"""Default minimum confidence of a conclusive first verdict."""
ACCEPT = 0.7
"""Default minimum confidence of an accepted second verdict."""


class Cascade:
    """Verifies with ``first``; if its verdict is not conclusive, verifies with ``then``.

    A pass or fail is conclusive if its confidence is at least ``below``. The second verdict is accepted if it is a pass
    or fail with a confidence of at least ``accept``. Otherwise the first verdict is returned.

    An ``error`` of the first verifier, such as a broken sandbox, is returned, so that the error is not hidden.
    With ``on_error="ask"``, the second verifier is asked instead.

    If ``then`` is None, the first verdict is always returned. If ``first`` is None (for example, a code verifier with
    no sandbox), the second verifier is always asked.

    ``detail`` records ``llm_judge_used``, ``llm_judge_failed``, and the verdict that was not returned.
    """

    name = "cascade"

    def __init__(
        self,
        first: Verifier | None,
        then: Verifier | None = None,
        below: float = GATE,
        accept: float = ACCEPT,
        on_error: Literal["keep", "ask"] = "keep",
    ) -> None:
        for key, value in (("below", below), ("accept", accept)):
            if not 0.0 <= value <= 1.0:
                raise ValueError(f"{key} is {value}; expected a confidence from 0 to 1")
        self.first, self.then = first, then
        self.below, self.accept, self.on_error = below, accept, on_error

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        """Return the second verdict if it is needed and accepted, otherwise the first verdict."""
        verdict = (
            await self.first.verify(query, candidate)
            if self.first is not None
            else Verdict("abstain", 0.0, "there is no first verifier, for example no sandbox", self.name)
        )
        if self.then is None or not self._needs_second(verdict):
            return verdict
        second = await self.then.verify(query, candidate)
        flags = {"llm_judge_used": True, "llm_judge_failed": second.outcome == "error"}
        if second.outcome in ("pass", "fail") and second.confidence >= self.accept:
            return replace(second, detail={**second.detail, **flags, "first": _summary(verdict)})
        explanation = verdict.explanation
        if second.outcome == "error":
            explanation += f" (the second verifier failed: {second.explanation})"
        return replace(verdict, explanation=explanation, detail={**verdict.detail, **flags, "then": _summary(second)})

    def verified_by(self, query: Query) -> str:
        """Return the name of the first verifier that can decide about ``query``; "" if neither can."""
        return verified_by(self.first, query) or verified_by(self.then, query)

    def planned_calls(self, query: Query, candidates: int) -> Sequence[PlannedCalls]:
        """Return the planned calls of both verifiers. If the first can decide, no call of the second is expected."""
        second = planned_calls(self.then, query, candidates)
        if verified_by(self.first, query):
            second = [replace(calls, expected=0) for calls in second]
        return [*planned_calls(self.first, query, candidates), *second]

    def _needs_second(self, verdict: Verdict) -> bool:
        if verdict.outcome == "error":
            return self.on_error == "ask"
        return verdict.outcome == "abstain" or verdict.confidence < self.below


def _summary(verdict: Verdict) -> JsonObject:
    """Return ``verdict`` as a dictionary, for the ``detail`` of the returned verdict."""
    return {
        "outcome": verdict.outcome,
        "confidence": verdict.confidence,
        "verifier": verdict.verifier,
        "explanation": verdict.explanation,
    }
