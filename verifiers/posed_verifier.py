"""Verifies answers to malformed, unsolvable and vague problems: an answer that notices the flaw passes.

``conf/verifier/posed.yaml`` builds it; ``docs/epistemic.md`` describes the datasets.
"""

from __future__ import annotations

from dataclasses import replace

from bestofn.builders.formats.judge_reply import MOST_JUDGED, candidate_text, fenced, object_schema
from bestofn.builders.formats.judge_request import judge_replies, judge_request
from bestofn.builders.protocols import Sampler, Verifier
from bestofn.builders.records import Candidate, Outcome, Query, Verdict
from bestofn.verifiers.judge_prompts import SYSTEM, prompt
from bestofn.verifiers.refusal_classifier import RefusalClassifier, refusal_detail
from bestofn.verifiers.stance import Stance, stance

OUTCOMES: dict[Stance, tuple[Outcome, float]] = {
    "flags": ("pass", 0.9),
    "asks": ("pass", 0.9),
    "answers": ("fail", 0.9),
    "hedges": ("abstain", 0.5),
    "refuses": ("abstain", 0.5),
    "silent": ("abstain", 0.0),
}
"""Outcome and confidence of each stance for a malformed problem."""
SCHEMA = object_schema(
    reasoning={"type": "string"}, stance={"type": "string", "enum": ["answers", "hedges", "flags", "asks", "refuses"]}
)


class PosedVerifier:
    """``well_posed`` verifies well-posed problems. For other problems (``metadata["posed"]``) the stance decides.

    An answer that names the flaw or asks back passes. A stated result fails. A result that names its assumption
    abstains. For a vague request any answer may be fair, so no answer fails.

    ``detail["stance"]`` is recorded for every answer, for the rates of ``builders.analysis.epistemic``. A justified
    refusal has ``detail["refusal"]["right"]``, and pairing does not leave it out. With a ``sampler``, a model decides
    the stance of answers whose wording does not show it.
    """

    name = "posed"

    def __init__(
        self, well_posed: Verifier, *, refusals: RefusalClassifier | None = None, sampler: Sampler | None = None
    ) -> None:
        self.well_posed, self.refusals, self.sampler = well_posed, refusals, sampler

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        """The verdict on one answer, with its stance in ``detail``."""
        posed = str(query.metadata.get("posed") or "well")
        shown = stance(candidate.text, str(query.metadata.get("symbol") or ""))
        if self.sampler is not None and shown in ("hedges", "silent"):
            shown = await self._stance_by_model(self.sampler, query, candidate) or shown
        if posed == "well":
            verdict = await self.well_posed.verify(query, candidate)
            return replace(verdict, detail={**verdict.detail, "stance": shown})
        outcome, confidence = OUTCOMES[shown]
        if posed == "vague" and outcome == "fail":
            outcome, confidence = "abstain", 0.5
        detail: dict[str, object] = {"stance": shown, "posed": posed, "flaw": query.metadata.get("flaw") or ""}
        if self.refusals is not None:
            refusal = await self.refusals.classify(query, candidate)
            detail["refusal"] = {**refusal_detail(refusal), "right": outcome == "pass"}
        explanation = f"the problem is malformed ({posed}); stance of the answer: {shown}"
        return Verdict(outcome, confidence, explanation, self.name, detail)

    async def _stance_by_model(self, sampler: Sampler, query: Query, candidate: Candidate) -> Stance | None:
        """The stance according to a model; None when its reply cannot be read."""
        answer = candidate_text(candidate, MOST_JUDGED)
        material = fenced(question=query.text, answer=answer)
        request = judge_request(SYSTEM, material, prompt("stance").text, SCHEMA, max_tokens=600)
        (reply,) = await judge_replies(sampler, request, [answer])
        return None if isinstance(reply, str) else reply["stance"]
