"""Adds to each verdict whether the answer is a refusal. ``by_split.routed`` builds this verifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bestofn.builders.protocols import PlannedCalls, Verifier, in_worker, planned_calls, verified_by
from bestofn.builders.records import Candidate, Query, Verdict
from bestofn.verifiers.refusal_classifier import RefusalClassifier, refusal_detail


class WithRefusal:
    """Verifies with ``verifier``, and adds the refusal classification as ``detail["refusal"]``.

    The outcome does not change: a correct answer that contains "I cannot" still passes. Pairing may exclude refusals,
    unless the verifier reports that the refusal is right: ``detail["refusal"]["right"]``.
    """

    def __init__(self, verifier: Verifier, classifier: RefusalClassifier) -> None:
        self.verifier, self.classifier = verifier, classifier
        self.name = verifier.name

    def verified_by(self, query: Query) -> str:
        """Return the name of the verifier that will decide about ``query``; "" if none will."""
        return verified_by(self.verifier, query)

    def in_worker(self, query: Query) -> Verifier | None:
        """Return this verifier for a worker process. There is none if a model decides in unsure cases."""
        inner = in_worker(self.verifier, query)
        if inner is None or self.classifier.sampler is not None:
            return None
        return WithRefusal(inner, self.classifier)

    def planned_calls(self, query: Query, candidates: int) -> Sequence[PlannedCalls]:
        """Return the planned calls of the verifier and of the refusal classifier."""
        return [
            *planned_calls(self.verifier, query, candidates),
            *planned_calls(self.classifier, query, candidates),
        ]

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        """Return the verdict on one answer, with the classification in ``detail``."""
        verdict = await self.verifier.verify(query, candidate)
        refusal = await self.classifier.classify(query, candidate)
        own = verdict.detail.get("refusal") or {}
        return replace(verdict, detail={**verdict.detail, "refusal": {**refusal_detail(refusal), **own}})
