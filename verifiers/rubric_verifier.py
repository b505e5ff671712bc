"""Verifies answers with a rubric per query. ``conf/verifier/rubric.yaml`` builds the verifier."""

from __future__ import annotations

from collections.abc import Sequence

from bestofn.builders.errors import ConfigError
from bestofn.builders.formats.rubric import VERDICT, exact
from bestofn.builders.protocols import PlannedCalls, Sampler, Verifier, planned_calls
from bestofn.builders.records import Candidate, JsonObject, Query, Verdict
from bestofn.verifiers.rubric_grading import Grade, RubricGrader


class RubricVerifier:
    """Verifies an answer by the share of the rubric's weights that it satisfies.

    ``fail``: a required criterion is not satisfied, or the share would be below ``pass_share`` even if all unknown
    criteria were satisfied. ``pass``: all required criteria are satisfied, and the share is at least ``pass_share``
    without the unknown ones. Otherwise the verdict is ``abstain``, or ``error`` if a reply of the judge could not be
    read. ``verifier`` evaluates the criteria with the check ``verdict``. The other parameters are those of
    ``RubricGrader``.
    """

    name = "rubric"
    read_files = ("file",)

    def __init__(
        self,
        sampler: Sampler | None = None,
        *,
        criteria: Sequence[object] = (),
        file: str = "",
        verifier: Verifier | None = None,
        pass_share: float = 1.0,
        per_request: int = 8,
        use_reference: bool = True,
        max_tokens: int = 1_500,
    ) -> None:
        if not 0 < pass_share <= 1:
            raise ConfigError(f"pass_share is {pass_share}; expected a number above 0, at most 1")
        self.grader = RubricGrader(sampler, criteria, file, per_request, use_reference, max_tokens)
        self.verifier, self.pass_share = verifier, pass_share

    def verified_by(self, query: Query) -> str:
        """Return the name of this verifier if ``query`` has a rubric, otherwise ""."""
        return self.name if self.grader.rubric(query) else ""

    def planned_calls(self, query: Query, candidates: int) -> Sequence[PlannedCalls]:
        """Return the planned calls of the judge, plus those of ``verifier`` if a criterion needs its verdict."""
        more = planned_calls(self.verifier, query, candidates) if self._needs_verdict(query) else ()
        return [*self.grader.planned_calls(query, candidates), *more]

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        """Return the verdict on ``candidate``."""
        if not self.grader.rubric(query):
            return Verdict("abstain", 0.0, "the query has no rubric", self.name)
        needed = self.verifier if self._needs_verdict(query) else None
        verdict = await needed.verify(query, candidate) if needed is not None else None
        grade = await self.grader.grade(query, candidate, verdict, stop_if_broken=True)
        return self._decided(grade)

    def _needs_verdict(self, query: Query) -> bool:
        return any(one.check is not None and VERDICT in one.check for one in self.grader.rubric(query))

    def _decided(self, grade: Grade) -> Verdict:
        held, detail = grade.fulfilment, detail_of(grade)
        low, high = held.share(unknown=False), held.share(unknown=True)
        required_unknown = any(one.required for one in held.unknown)
        if held.broken:
            reason = f"required and not satisfied: {held.broken[0].text}"
            return Verdict("fail", grade.confidence, reason, self.name, detail)
        needed = exact(self.pass_share)
        share = f"{float(low):.0%} of the weights are satisfied; {self.pass_share:.0%} are needed"
        if high < needed:
            return Verdict("fail", grade.confidence, share, self.name, detail)
        if low >= needed and not required_unknown:
            return Verdict("pass", grade.confidence, share, self.name, detail)
        reason = f"{len(held.unknown)} criteria could not be decided, such as: {held.unknown[0].text}"
        if grade.problems:
            return Verdict("error", 0.0, f"{reason} ({grade.problems[0]})", self.name, detail)
        return Verdict("abstain", 0.0, reason, self.name, detail)


def detail_of(grade: Grade) -> JsonObject:
    """Return the entries of ``detail``: whether each criterion is satisfied, and the satisfied share of the weights.

    Unknown criteria do not count towards the share.
    """
    held = grade.fulfilment
    states = [{"text": one.text, "satisfied": state} for one, state in zip(held.criteria, held.states, strict=True)]
    return {"criteria": states, "share": float(held.share(unknown=False)), "unread": len(grade.problems)}
