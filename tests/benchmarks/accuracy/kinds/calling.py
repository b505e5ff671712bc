"""The decision of a model that has tools: to answer, to call a tool, to ask, or to decline."""

from __future__ import annotations

from bestofn.builders.records import Query, Reference
from tests.benchmarks.accuracy.kinds.kind import Kind
from tests.benchmarks.accuracy.kinds.stance import LABELS
from tests.benchmarks.accuracy.labelled import Case, LabelledRow, answer


def case(row: LabelledRow) -> Case:
    """Convert one row of a set whose labels are stances. An answer is right if it has the expected stance."""
    names = {name: name for name in LABELS}
    stance, expected = row.one_of("label", names), row.one_of("expected", names)
    reference = Reference(checks={"calling": expected})
    messages = ({"role": "user", "content": row.text("question")},)
    query = Query(row.text("id"), "calling", messages, tuple(row.items("tools")), reference)
    label = None if stance is None else "pass" if stance == expected else "fail"
    return Case(query, answer(row.text("response")), label)


KIND = Kind(("stance_when2call",), case, verifier=("verifier=calling",))
