"""The math verifier. It calls ``judge_answer`` directly, and SymPy in worker processes for undecided answers.

``conf/verifier/math.yaml`` builds this verifier; ``docs/math.md`` describes it.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

from bestofn.builders.protocols import Workers
from bestofn.builders.records import Candidate, Query, Reference, Verdict
from bestofn.verifiers.math_verifier import symbolic, units
from bestofn.verifiers.math_verifier.confidence import Outcome, confidence
from bestofn.verifiers.math_verifier.extraction import Answer, final_answer
from bestofn.verifiers.math_verifier.judge import Finding, Settings, judge_answer
from bestofn.verifiers.math_verifier.plain_text import plain_text
from bestofn.verifiers.math_verifier.rounding import Rounding
from bestofn.verifiers.math_verifier.rules.terms import MissingUnit

ROUNDINGS = ("strict", "reference_precision", "lenient")
MISSING_UNITS = ("pass", "abstain", "fail")
MOST_LOAD = 20  # on a busy machine, a comparison may take this many times its processor time


class MathVerifier:
    """Verifies whether the final answer of a candidate equals ``reference.answer`` or one of ``reference.answers``.

    ``rounding``      the rounding policy (see the module ``rounding``); verdicts record it.
    ``missing_unit``  the outcome if the number is correct but its unit is missing: ``pass`` (confidence 0.6),
                      ``abstain`` or ``fail``.
    ``workers``       worker processes for SymPy, which can be killed. If None, SymPy is not used.
    ``symbolic_s``    limit of SymPy per comparison, in seconds of processor time. So it does not depend on the load.
    ``max_length``    maximum length of an answer in characters; longer answers are not compared.

    The verdict is ``abstain`` if there is no reference or no answer, or if the comparison is undecided.
    """

    name = "math"

    def __init__(
        self,
        workers: Workers | None = None,
        rounding: Rounding = "reference_precision",
        missing_unit: MissingUnit = "pass",
        symbolic_s: float = 1.5,
        max_length: int = 10_000,
    ) -> None:
        if rounding not in ROUNDINGS:
            raise ValueError(f"rounding is {rounding!r}; expected one of {', '.join(ROUNDINGS)}")
        if missing_unit not in MISSING_UNITS:
            raise ValueError(f"missing_unit is {missing_unit!r}; expected one of {', '.join(MISSING_UNITS)}")
        self.workers = workers
        self.settings = Settings(rounding, missing_unit, max_length)
        self.symbolic_s = symbolic_s

    def verified_by(self, query: Query) -> str:
        """Return the name of this verifier if the query has a reference answer; otherwise ""."""
        return self.name if accepted(query.reference) else ""

    def in_worker(self, query: Query) -> MathVerifier:
        """Return this verifier, which needs no model and no sandbox."""
        return self

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        """Return the verdict on the final answer of ``candidate``. ``detail["method"]`` names the rule that decided."""
        started = time.perf_counter()
        finding = await self.find(query, candidate)
        return self._verdict(finding, time.perf_counter() - started)

    async def find(self, query: Query, candidate: Candidate) -> Finding:
        """Compare the answer with every reference answer and return the best finding: pass, then abstain, then fail."""
        references = accepted(query.reference)
        if not references:
            return Finding("abstain", 0.0, "the query has no reference answer")
        answer = final_answer(plain_text(candidate.text) or "")
        if not units.is_loaded() and any(map(str.isalpha, "".join((*references, answer.text)))):
            await asyncio.to_thread(units.load)  # imports pint, which takes half a second
        findings = []
        for reference in references:
            finding = judge_answer(reference, answer, query.text, query.reference.choices, self.settings)
            if finding.outcome == "abstain" and finding.formal:
                finding = await self._symbolic(reference, answer, finding)
            if finding.outcome == "pass":
                return finding
            findings.append(finding)
        return next((finding for finding in findings if finding.outcome == "abstain"), findings[0])

    async def _symbolic(self, reference: str, answer: Answer, finding: Finding) -> Finding:
        if self.workers is None:
            return finding
        try:
            equal = await self.workers.call(
                symbolic.decide,
                reference,
                answer.text,
                timeout_s=MOST_LOAD * self.symbolic_s,
                cpu_s=self.symbolic_s,
                prepare=symbolic.load,
            )
        except (TimeoutError, MemoryError, RecursionError) as error:
            return replace(finding, outcome="abstain", method=f"symbolic: {error}", confidence=0.0)
        if equal is None:
            return finding
        outcome: Outcome = "pass" if equal else "fail"
        certainty = confidence(outcome, "symbolic", finding.extraction)
        return replace(finding, outcome=outcome, method="symbolic", confidence=certainty)

    def _verdict(self, finding: Finding, seconds: float) -> Verdict:
        detail = {
            "method": finding.method,
            "answer": finding.answer,
            "reference_form": finding.reference_form,
            "answer_form": finding.answer_form,
            "extraction": finding.extraction,
            "rounding": self.settings.rounding,
        }
        return Verdict(finding.outcome, finding.confidence, explain(finding), self.name, detail, seconds)


def accepted(reference: Reference) -> tuple[str, ...]:
    """Return all reference answers that are not empty."""
    answers = (plain_text(answer) for answer in (reference.answer, *reference.answers))
    return tuple(answer for answer in answers if answer is not None and answer.strip())


def explain(finding: Finding) -> str:
    """Return the finding as one sentence."""
    if not finding.answer:
        return finding.method
    relation = {"pass": "equals", "fail": "differs from", "abstain": "cannot be compared with"}[finding.outcome]
    return f"{finding.answer[:200]!r} {relation} the reference {finding.reference_form[:200]!r} ({finding.method})"
