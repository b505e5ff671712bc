"""Refusals: by patterns first, by a model only where the patterns are unsure and a model is given."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from bestofn.builders.errors import ProviderError
from bestofn.builders.formats.judge_reply import fenced, object_schema, reply_object
from bestofn.builders.protocols import Sampler
from bestofn.builders.records import Candidate, Persona, Query, Request, Sampling
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
    """Tells whether an answer refuses, and how.

    A service's own word (``stop_reason`` refusal or content_filter) settles it. Else the patterns of
    ``verifiers.refusal_patterns`` do, with the persona's ``whitelist``. With a ``sampler``, a model is asked where
    they are unsure: a confidence above 0 and below ``unsure_below``, or no hit in more than ``long_from`` characters.
    A model that gives no readable answer changes nothing.
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
        if candidate.stop_reason in ("refusal", "content_filter"):
            return Refusal(True, CONFIDENCE[-1], "safety", (f"stop_reason:{candidate.stop_reason}",))
        found = classify(candidate.text, self.whitelist)
        if self.sampler is None or not self._unsure(found, candidate.text):
            return found
        return await self._asked(self.sampler, query, candidate, found)

    def _unsure(self, found: Refusal, text: str) -> bool:
        if found.matched_patterns:
            return 0.0 < found.confidence < self.unsure_below
        return len(text) > self.long_from

    async def _asked(self, sampler: Sampler, query: Query, candidate: Candidate, found: Refusal) -> Refusal:
        question = prompt("refusal")
        material = fenced(question=query.text, answer=candidate.text)
        request = Request(
            messages=(
                {"role": "system", "content": SYSTEM},
                {"role": "user", "content": f"{material}\n\n{question.text}"},
            ),
            sampling=Sampling(temperature=0.0, max_tokens=600),
            schema=SCHEMA,
        )
        (answer,) = await sampler.draw(request)
        if isinstance(answer, ProviderError):
            return found
        reply = reply_object(answer.text, SCHEMA, candidate.text)
        if isinstance(reply, str):
            return found
        confidence = float(reply["confidence"]) if reply["refuses"] else 0.0
        kind = reply["refusal_type"] if reply["refusal_type"] in KINDS else "other"
        return Refusal(
            confidence >= THRESHOLD,
            confidence,
            kind if confidence >= THRESHOLD else None,
            (*found.matched_patterns, question.id),
            found.whitelisted,
        )


def refusal_detail(refusal: Refusal) -> Mapping[str, Any]:
    """The entry ``detail["refusal"]`` of a verdict."""
    return dataclasses.asdict(refusal) | {"matched_patterns": list(refusal.matched_patterns)}
