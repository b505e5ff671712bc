"""Lays what a refusal classifier finds beside a verdict, without touching the verdict."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from bestofn.builders.protocols import Verifier
from bestofn.builders.records import Candidate, Query, Verdict
from bestofn.verifiers.refusal_classifier import RefusalClassifier, refusal_detail


class WithRefusal:
    """``verifier``'s verdict, with ``detail["refusal"]`` for every row: a verified answer that holds the words
    "I cannot" stays verified, and pairs may still leave refusals out."""

    def __init__(self, verifier: Verifier, classifier: RefusalClassifier) -> None:
        self.verifier, self.classifier = verifier, classifier
        self.name = verifier.name

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        refusal, verdict = await asyncio.gather(
            self.classifier.classify(query, candidate), self.verifier.verify(query, candidate)
        )
        return replace(verdict, detail={**verdict.detail, "refusal": refusal_detail(refusal)})
