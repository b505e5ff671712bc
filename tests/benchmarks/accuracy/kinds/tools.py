"""Tool calls of BFCL, with the expected calls as the reference."""

from __future__ import annotations

from bestofn.builders.formats.tool_calls import call, expected_from_bfcl, from_bfcl
from bestofn.builders.records import Candidate, Query, Reference
from tests.benchmarks.accuracy.figures import Result
from tests.benchmarks.accuracy.kinds.kind import Kind
from tests.benchmarks.accuracy.labelled import Case, LabelledRow, answer

CONTESTED = "type_error:nested"  # the official checker rejects an integer inside an array of numbers, although equal


def case(row: LabelledRow) -> Case:
    """Convert one output of BFCL: native calls, or a text that may contain calls."""
    tools = tuple(from_bfcl(function) for function in row.items("functions"))
    reference = Reference(calls=expected_from_bfcl(row.items("possible_answer")))
    query = Query(
        row.text("id"), "tool_calling", ({"role": "user", "content": row.text("question")},), tools, reference
    )
    raw = row["raw_output"]
    if isinstance(raw, str):
        candidate = answer(raw)
    else:
        made = [(name, arguments) for item in row.items("raw_output") for name, arguments in item.items()]
        calls = [call(name, arguments, f"call_{at}") for at, (name, arguments) in enumerate(made)]
        candidate = Candidate(0, ({"role": "assistant", "content": None, "tool_calls": calls},))
    return Case(query, candidate, row.outcome(), row={"error_type": row["error_type"]})


def uncontested(result: Result) -> tuple[str, ...]:
    """Return the group ``UNCONTESTED``; () if the verifier passes an answer whose official fail is contested."""
    contested = result.case.row["error_type"] == CONTESTED and result.decision.said == "pass"
    return () if contested and result.case.label == "fail" else ("UNCONTESTED",)


KIND = Kind(("tool_bfcl",), case, more_groups=uncontested)
