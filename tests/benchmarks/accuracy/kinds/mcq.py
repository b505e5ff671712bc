"""Multiple-choice questions. The reference is one letter, or several letters if several options are right."""

from __future__ import annotations

from bestofn.builders.records import Query, Reference
from tests.benchmarks.accuracy.kinds.kind import Kind
from tests.benchmarks.accuracy.labelled import Case, LabelledRow, answer


def case(row: LabelledRow) -> Case:
    """Convert one row of a labelled set of multiple-choice questions. The prompt contains the options."""
    options = tuple(map(str, row["options"] or ()))
    prompt = row.text("question")
    if options and options[0] not in prompt:
        prompt += "".join(f"\n{chr(ord('A') + at)}. {option}" for at, option in enumerate(options))
    query = Query(  # without a split, the reference determines the verifier
        row.text("id"),
        "",
        ({"role": "user", "content": prompt},),
        reference=Reference(answer=row.text("gold"), choices=options),
    )
    groups = ("RUN ON",) if row.get("run_on") else ()
    return Case(query, answer(row.text("candidate")), row.outcome(), groups)


KIND = Kind(("mcq_mmlupro", "mcq_gaokao", "mcq_mmmupro"), case, optional=frozenset({"mcq_mmmupro"}))
