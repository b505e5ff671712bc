"""Whether an answer refuses: by patterns, and by a model where the patterns are unsure.

``WithRefusal`` records the result with every verdict; ``conf/verifier/refusals.yaml`` builds the classifier.
"""

from __future__ import annotations

import dataclasses

from bestofn.builders.formats.judge_reply import fenced, object_schema
from bestofn.builders.formats.judge_request import judge_replies, judge_request
from bestofn.builders.protocols import Sampler
from bestofn.builders.records import Candidate, JsonObject, Persona, Query
from bestofn.verifiers.judge_prompts import SYSTEM, prompt
from bestofn.verifiers.refusal_patterns import CONFIDENCE, THRESHOLD, Refusal, classify

KINDS = ("safety", "capability", "unclear", "partial", "other")
SCHEMA = object_schema(
    reasoning={"type": "string"},
    refuses={"type": "boolean"},
    refusal_type={"type": "string", "enum": [*KINDS, "none"]},
    confidence={"type": "number", "minimum": 0, "maximum": 1},
)


class RefusalClassifier:
    """Decides whether an answer refuses, and why.

    The service's ``stop_reason`` decides if it is ``refusal`` or ``content_filter``. Otherwise the patterns of
    ``verifiers.refusal_patterns`` decide, with the ``whitelist`` of the persona. With a ``sampler``, a model is asked
    where the patterns are unsure: a confidence above 0 and below ``unsure_below``, or no match in a text of more than
    ``long_from`` characters. An unreadable reply of the model leaves the result of the patterns.
    """

    def __init__(
        self,
        *,
        persona: Persona | None = None,
        sampler: Sampler | None = None,
        unsure_below: float = 0.7,
        long_from: int = 500,
    ) -> None:
        self.whitelist = persona.whitelist if persona else ()
        self.sampler = sampler
        self.unsure_below = unsure_below
        self.long_from = long_from

    async def classify(self, query: Query, candidate: Candidate) -> Refusal:
        """The classification of one answer. Raises only errors that stop the run."""
        if candidate.stop_reason in ("refusal", "content_filter"):
            return Refusal(True, CONFIDENCE[-1], "safety", (f"stop_reason:{candidate.stop_reason}",))
        by_patterns = classify(candidate.text, self.whitelist)
        if self.sampler is None or not self._unsure(by_patterns, candidate.text):
            return by_patterns
        return await self._by_model(self.sampler, query, candidate, by_patterns)

    def _unsure(self, by_patterns: Refusal, text: str) -> bool:
        if by_patterns.matched_patterns:
            return 0.0 < by_patterns.confidence < self.unsure_below
        return len(text) > self.long_from

    async def _by_model(self, sampler: Sampler, query: Query, candidate: Candidate, by_patterns: Refusal) -> Refusal:
        chosen = prompt("refusal")
        material = fenced(question=query.text, answer=candidate.text)
        request = judge_request(SYSTEM, material, chosen.text, SCHEMA, max_tokens=600)
        (reply,) = await judge_replies(sampler, request, [candidate.text])
        if isinstance(reply, str):
            return by_patterns
        confidence = float(reply["confidence"]) if reply["refuses"] else 0.0
        kind = reply["refusal_type"] if reply["refusal_type"] in KINDS else "other"
        return Refusal(
            confidence >= THRESHOLD,
            confidence,
            kind if confidence >= THRESHOLD else None,
            (*by_patterns.matched_patterns, chosen.id),
            by_patterns.whitelisted,
        )


def refusal_detail(refusal: Refusal) -> JsonObject:
    """The entry ``detail["refusal"]`` of a verdict."""
    return dataclasses.asdict(refusal) | {"matched_patterns": list(refusal.matched_patterns)}
