"""The multiple-choice verifier.

``conf/verifier/choice.yaml`` builds this verifier; ``docs/verifiers.md`` describes it.
"""

from __future__ import annotations

import time

from bestofn.builders.formats.multiple_choice import gold_options
from bestofn.builders.records import Candidate, Query, Verdict
from bestofn.verifiers.calibration import calibrated
from bestofn.verifiers.choice_verifier.judge import Finding, judge_choice, options_of


class ChoiceVerifier:
    """Verifies whether a candidate names exactly the options of the gold answer.

    The options are ``reference.choices``, or else the options that the prompt lists. The verdict is ``abstain`` if the
    gold answer or the response names no options, or if the response names different options without a correction.
    """

    name = "choice"

    def verified_by(self, query: Query) -> str:
        """Return the name of this verifier if each gold answer of the query names options; otherwise ""."""
        golds, options = query.reference.accepted, options_of(query)
        return self.name if golds and all(gold_options(gold, options) for gold in golds) else ""

    def in_worker(self, query: Query) -> ChoiceVerifier:
        """Return this verifier, which needs no model and no sandbox."""
        return self

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        """Return the verdict on the options that ``candidate`` names. ``detail["method"]`` names the deciding rule."""
        started = time.perf_counter()
        finding = judge_choice(query.reference.accepted, candidate.text, options_of(query))
        detail = {
            "method": finding.method,
            "answer": finding.answer,
            "reference_form": finding.wanted,
            "answer_form": finding.given,
            "extraction": finding.extraction,
        }
        seconds = time.perf_counter() - started
        return calibrated(Verdict(finding.outcome, 0.0, explain(finding), self.name, detail, seconds))


def explain(finding: Finding) -> str:
    """Return the finding as one sentence."""
    if finding.outcome == "abstain":
        return finding.method
    given = finding.given or "no option"
    verb = "is" if finding.outcome == "pass" else "is not"
    return f"the answer names {given}, which {verb} the gold answer {finding.wanted} ({finding.method})"
