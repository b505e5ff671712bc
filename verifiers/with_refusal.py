"""Records with each verdict whether the answer refuses. ``by_split.routed`` uses it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from bestofn.builders.protocols import Verifier
from bestofn.builders.records import Candidate, Query, Verdict
from bestofn.verifiers.refusal_classifier import RefusalClassifier, refusal_detail


class WithRefusal:
    """The verdict of ``verifier``, with the classification in ``detail["refusal"]``.

    The outcome does not change: a right answer with the words "I cannot" still passes. Pairing may leave out refusals.
    """

    def __init__(self, verifier: Verifier, classifier: RefusalClassifier) -> None:
        self.verifier, self.classifier = verifier, classifier
        self.name = verifier.name

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        """Verify and classify one answer at the same time."""
        refusal, verdict = await asyncio.gather(
            self.classifier.classify(query, candidate), self.verifier.verify(query, candidate)
        )
        return replace(verdict, detail={**verdict.detail, "refusal": refusal_detail(refusal)})
