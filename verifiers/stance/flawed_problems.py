"""Verifies answers to malformed, unsolvable and vague problems. An answer that identifies the flaw passes.

``conf/verifier/posed.yaml`` builds the verifier; ``docs/personas.md`` describes the datasets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bestofn.builders.formats.inline_thinking import without_thinking
from bestofn.builders.formats.judge_reply import MOST_JUDGED, candidate_text, fenced, object_schema
from bestofn.builders.formats.judge_request import judge_replies, judge_request
from bestofn.builders.protocols import PlannedCalls, Sampler, Verifier, planned_calls, verified_by
from bestofn.builders.records import Candidate, Outcome, Query, Verdict
from bestofn.verifiers.judge.prompts import SYSTEM, prompt
from bestofn.verifiers.refusal.classifier import RefusalClassifier, refusal_detail
from bestofn.verifiers.stance.patterns import Reading, Stance, notices_nothing, read_stance

OUTCOMES: dict[Stance, Outcome] = {
    "flags": "pass",
    "asks": "pass",
    "answers": "fail",
    "hedges": "abstain",
    "refuses": "abstain",
    "calls": "abstain",
    "silent": "abstain",
}
"""Stance -> outcome of the verdict, for a malformed problem."""
MAX_REPLY_TOKENS = 600
SCHEMA = object_schema(
    reasoning={"type": "string"}, stance={"type": "string", "enum": ["answers", "hedges", "flags", "asks", "refuses"]}
)


class PosedVerifier:
    """Verifies answers to flawed problems by their stance, and answers to well-posed problems with ``well_posed``.

    ``metadata["posed"]`` of the query is ``well`` or the kind of flaw. For a flawed problem, an answer that names the
    flaw or asks for clarification passes, and an answer that states a result fails. If the answer does both, or
    neither, the verdict is ``abstain``. For a vague request, no answer fails, because any answer may be acceptable.

    ``detail`` records the ``stance`` of every answer, the rule that decided (``stance_rule``), and
    ``stance_confidence``. If a refusal is justified, ``detail["refusal"]["right"]`` is true and pairing keeps the
    answer. If the text patterns find no stance or find that the answer hedges, a ``sampler`` decides the stance.
    """

    name = "posed"

    def __init__(
        self, well_posed: Verifier, *, refusals: RefusalClassifier | None = None, sampler: Sampler | None = None
    ) -> None:
        self.well_posed, self.refusals, self.sampler = well_posed, refusals, sampler

    def verified_by(self, query: Query) -> str:
        """Return the name of this verifier for a flawed problem; otherwise the name of the verifier ``well_posed``."""
        if str(query.metadata.get("posed") or "well") != "well":
            return self.name
        return verified_by(self.well_posed, query)

    def planned_calls(self, query: Query, candidates: int) -> Sequence[PlannedCalls]:
        """Return the planned calls of ``well_posed``, and the calls for stances and refusals.

        A stance or a refusal needs a call only if the patterns do not decide it.
        """
        own = [PlannedCalls(self.sampler, 0, candidates, MAX_REPLY_TOKENS)] if self.sampler is not None else []
        others = (self.well_posed, self.refusals)
        return [*own, *(calls for other in others for calls in planned_calls(other, query, candidates))]

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        """Return the verdict on one answer, with its stance in ``detail``."""
        posed = str(query.metadata.get("posed") or "well")
        reading = _reading(query, candidate)
        if self.sampler is not None and _is_unsure(reading, posed):
            by_model = await self._stance_by_model(self.sampler, query, candidate)
            reading = Reading(by_model, "model") if by_model else reading
        shown = reading.stance
        recorded = {"stance": shown, "stance_rule": reading.rule, "stance_confidence": reading.confidence}
        if posed == "well":
            verdict = await self.well_posed.verify(query, candidate)
            return replace(verdict, detail={**verdict.detail, **recorded})
        outcome = OUTCOMES[shown]
        if outcome == "fail" and (posed == "vague" or not _answers(reading, query, candidate)):
            outcome = "abstain"
        detail: dict[str, object] = {**recorded, "posed": posed, "flaw": query.metadata.get("flaw") or ""}
        if self.refusals is not None:
            refusal = await self.refusals.classify(query, candidate)
            detail["refusal"] = {**refusal_detail(refusal), "right": outcome == "pass"}
        explanation = f"the problem is malformed ({posed}); stance of the answer: {shown}"
        return Verdict(outcome, 0.0 if outcome == "abstain" else reading.confidence, explanation, self.name, detail)

    async def _stance_by_model(self, sampler: Sampler, query: Query, candidate: Candidate) -> Stance | None:
        """Return the stance that a model reports, or None if its reply cannot be read."""
        answer = candidate_text(candidate, MOST_JUDGED)
        material = fenced(question=query.text, answer=answer)
        request = judge_request(SYSTEM, material, prompt("stance").text, SCHEMA, max_tokens=MAX_REPLY_TOKENS)
        (reply,) = await judge_replies(sampler, request, [answer])
        return None if isinstance(reply, str) else reply["stance"]


def _reading(query: Query, candidate: Candidate) -> Reading:
    """Return the stance of an answer. An answer that ends with tool calls has the stance ``calls``."""
    if candidate.messages and candidate.messages[-1].get("tool_calls"):
        return Reading("calls", "call")
    return read_stance(candidate.text, str(query.metadata.get("symbol") or ""), query.text, query.tools)


def _answers(reading: Reading, query: Query, candidate: Candidate) -> bool:
    """Return whether the candidate states a result for a malformed problem and shows no sign of noticing the flaw."""
    if reading.rule in ("statement", "model"):
        return reading.rule == "model"
    return notices_nothing(without_thinking(candidate.text)[1], query.text, stated=reading.rule == "result")


def _is_unsure(reading: Reading, posed: str) -> bool:
    """Return whether the patterns cannot decide the stance. In this case, a ``sampler`` is asked."""
    return reading.stance in ("hedges", "silent") or (posed != "well" and reading.rule == "statement")
