"""Scores what an answer makes of a malformed problem: right is who notices, wrong is who states a result."""

from __future__ import annotations

from dataclasses import replace

from bestofn.builders.errors import ProviderError, raise_if_it_stops_the_run
from bestofn.builders.formats.judge_reply import MOST_JUDGED, candidate_text, fenced, object_schema, reply_object
from bestofn.builders.protocols import Sampler, Verifier
from bestofn.builders.records import Candidate, Outcome, Query, Request, Sampling, Verdict
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
SCHEMA = object_schema(
    reasoning={"type": "string"}, stance={"type": "string", "enum": ["answers", "hedges", "flags", "asks", "refuses"]}
)


class PosedVerifier:
    """``well_posed`` verifies problems that are well posed; of the others (``metadata["posed"]``) the stance decides.

    Naming the fault or asking back passes, a stated result fails, a result with its assumption named abstains; to a
    vague request any answer may be fair, so that none fails. ``detail["stance"]`` is kept for every answer, for the
    rates of ``builders.analysis.epistemic``. A refusal that is right is marked (``detail["refusal"]["right"]``); pairs
    do not leave it out. With a ``sampler`` a model tells the stance of answers whose words do not.
    """

    name = "posed"

    def __init__(
        self, well_posed: Verifier, *, refusals: RefusalClassifier | None = None, sampler: Sampler | None = None
    ) -> None:
        self.well_posed, self.refusals, self.sampler = well_posed, refusals, sampler

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        posed = str(query.metadata.get("posed") or "well")
        taken = stance(candidate.text, str(query.metadata.get("symbol") or ""))
        if self.sampler is not None and taken in ("hedges", "silent"):
            taken = await self._asked(self.sampler, query, candidate) or taken
        if posed == "well":
            verdict = await self.well_posed.verify(query, candidate)
            return replace(verdict, detail={**verdict.detail, "stance": taken})
        outcome, confidence = OUTCOMES[taken]
        if posed == "vague" and outcome == "fail":
            outcome, confidence = "abstain", 0.5
        detail = {"stance": taken, "posed": posed, "flaw": query.metadata.get("flaw") or ""}
        if self.refusals is not None:
            refusal = await self.refusals.classify(query, candidate)
            detail["refusal"] = {**refusal_detail(refusal), "right": outcome == "pass"}
        return Verdict(
            outcome, confidence, f"the problem is malformed ({posed}); the answer {taken}", self.name, detail
        )

    async def _asked(self, sampler: Sampler, query: Query, candidate: Candidate) -> Stance | None:
        """The stance that a model hears; None when it gives no readable answer."""
        said = candidate_text(candidate, MOST_JUDGED)
        request = Request(
            messages=(
                {"role": "system", "content": SYSTEM},
                {
                    "role": "user",
                    "content": f"{fenced(question=query.text, answer=said)}\n\n{prompt('stance').text}",
                },
            ),
            sampling=Sampling(temperature=0.0, max_tokens=600),
            schema=SCHEMA,
        )
        (answer,) = await sampler.draw(request)
        raise_if_it_stops_the_run(answer)
        if isinstance(answer, ProviderError):
            return None
        reply = reply_object(answer.text, SCHEMA, said)
        return None if isinstance(reply, str) else reply["stance"]
