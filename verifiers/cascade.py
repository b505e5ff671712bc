"""Asks a second verifier where the first is unsure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from bestofn.builders.protocols import Verifier
from bestofn.builders.records import Candidate, Query, Verdict

GATE = 0.4
"""Below this confidence a verdict is not conclusive, and a second opinion is asked for."""
ACCEPT = 0.7
"""A second opinion counts from this confidence on."""


class Cascade:
    """``first``'s verdict when it is conclusive: pass or fail with a confidence of at least ``below``. Else ``then``'s.

    A conclusive verdict is never overruled, for ``then`` is not even asked. What ``then`` says counts only if it is
    pass or fail with a confidence of at least ``accept``; otherwise the first verdict stands. An ``error`` of the
    first (our own trouble: a sandbox that broke) is kept, so that it is repaired and not papered over by a guess,
    unless ``on_error="ask"``. ``then=None`` asks nobody; ``first=None`` (code without a sandbox) always asks ``then``.
    ``detail`` tells what happened: ``llm_judge_used``, ``llm_judge_failed``, and the verdict that did not count.
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
        verdict = (
            await self.first.verify(query, candidate)
            if self.first is not None
            else Verdict("abstain", 0.0, "nothing here can run it", self.name)
        )
        if self.then is None or not self._asks_on(verdict):
            return verdict
        second = await self.then.verify(query, candidate)
        flags = {"llm_judge_used": True, "llm_judge_failed": second.outcome == "error"}
        if second.outcome in ("pass", "fail") and second.confidence >= self.accept:
            return replace(second, detail={**second.detail, **flags, "first": _told(verdict)})
        return replace(verdict, detail={**verdict.detail, **flags, "then": _told(second)})

    def _asks_on(self, verdict: Verdict) -> bool:
        if verdict.outcome == "error":
            return self.on_error == "ask"
        return verdict.outcome == "abstain" or verdict.confidence < self.below


def _told(verdict: Verdict) -> dict[str, Any]:
    return {
        "outcome": verdict.outcome,
        "confidence": verdict.confidence,
        "verifier": verdict.verifier,
        "explanation": verdict.explanation,
    }
