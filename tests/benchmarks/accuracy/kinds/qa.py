"""Answers that are compared with one or several accepted answers. The reference determines the verifier."""

from __future__ import annotations

from bestofn.builders.records import Query, Reference
from tests.benchmarks.accuracy.kinds.kind import Kind
from tests.benchmarks.accuracy.labelled import Case, LabelledRow, answer


def case(row: LabelledRow) -> Case:
    """Convert one row of a labelled set. The field ``gold`` is a text or a list."""
    gold = (row.text("gold"),) if isinstance(row["gold"], str) else tuple(map(str, row.items("gold")))
    if not gold:
        raise row.error("has no accepted answer in the field 'gold'; expected at least one")
    query = Query(  # without a split, the reference determines the verifier
        row.text("id"),
        "",
        ({"role": "user", "content": row.text("question")},),
        reference=Reference(answer=gold[0], answers=gold[1:]),
    )
    return Case(query, answer(row.text("candidate")), row.outcome())


QUESTIONS = Kind(
    ("qa_evouna", "qa_semeval2013", "qa_openqa_nq301"), case, optional=frozenset({"qa_semeval2013", "qa_openqa_nq301"})
)
"""Short answers to open questions, and free explanations (SemEval)."""
SHORT = Kind(("short_bbh",), case, optional=frozenset({"short_bbh"}))
"""Options, truth values, numbers and sequences of words or brackets, at the end of a chain of thought."""
EXACT = Kind(("exact_cruxeval_output",), case, optional=frozenset({"exact_cruxeval_output"}))
"""Values in the notation of a programming language, such as the output of a program."""
