"""Short answers to open questions, with one or several accepted answers."""

from __future__ import annotations

from bestofn.builders.records import Query, Reference
from tests.benchmarks.accuracy.kinds.kind import Kind
from tests.benchmarks.accuracy.labelled import Case, LabelledRow, answer


def case(row: LabelledRow) -> Case:
    """Convert one row of a labelled set of short answers."""
    gold = tuple(map(str, row.items("gold")))
    if not gold:
        raise row.error("has no accepted answer in the field 'gold'; expected at least one")
    query = Query(  # without a split, the reference determines the verifier
        row.text("id"),
        "",
        ({"role": "user", "content": row.text("question")},),
        reference=Reference(answer=gold[0], answers=gold[1:]),
    )
    return Case(query, answer(row.text("candidate")), row.outcome())


KIND = Kind(("qa_evouna", "qa_openqa_nq301"), case, optional=frozenset({"qa_openqa_nq301"}))
