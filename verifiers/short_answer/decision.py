"""Compares an answer with the accepted answers. The result is pass or fail only if both sides were understood."""

from __future__ import annotations

from collections.abc import Sequence

from bestofn.verifiers.short_answer import list_rules, text_rules, value_rules
from bestofn.verifiers.short_answer.case import Case, case_of
from bestofn.verifiers.short_answer.finding import Finding
from bestofn.verifiers.short_answer.known_names import with_other_names
from bestofn.verifiers.short_answer.questions import Question
from bestofn.verifiers.short_answer.references import Reference
from bestofn.verifiers.short_answer.sentences import admits_ignorance
from bestofn.verifiers.short_answer.tokens import plain, separated

RULES = (
    text_rules.equal,
    list_rules.same_list,
    value_rules.formula,
    value_rules.truth,
    value_rules.date,
    value_rules.quantity,
    text_rules.option,
    text_rules.mentioned,
    text_rules.person,
    text_rules.another_of_class,
    text_rules.another_numeral,
)
"""The rules, in the order in which they are applied. The first finding counts."""


def decide(references: Sequence[Reference], asked: Question, answer: str) -> Finding:
    """Return the finding of the first rule that decides. If no rule decides, the finding is ``abstain``."""
    written = plain(answer)
    references = with_other_names(references, asked)
    finding = _first_finding(case_of(references, asked, written), written)
    if finding.outcome == "fail" and admits_ignorance(written):
        return Finding("abstain", "the answer says that it does not know")
    return finding


def _first_finding(case: Case, written: str) -> Finding:
    for rule in RULES:
        finding = rule(case)
        if finding is not None:
            return finding
    parted = separated(written)
    if parted != written:
        finding = text_rules.mentioned(case_of(case.references, case.question, parted))
        if finding is not None:
            return finding
    return text_rules.another(case) or Finding("abstain", "the answer and the reference could not be compared")
