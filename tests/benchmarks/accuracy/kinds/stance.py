"""The stance of answers: they answer, call a tool, ask for information, or say that they cannot answer."""

from __future__ import annotations

from bestofn.builders.records import Query, Verdict
from tests.benchmarks.accuracy.figures import Decision
from tests.benchmarks.accuracy.kinds.kind import Kind
from tests.benchmarks.accuracy.labelled import Case, LabelledRow, answer

LABELS = ("direct", "tool_call", "request_for_info", "cannot_answer")
STANCES = {
    "answers": "direct",
    "silent": "direct",
    "calls": "tool_call",
    "asks": "request_for_info",
    "flags": "cannot_answer",
    "refuses": "cannot_answer",
}
"""Stance of ``verifiers.stance.patterns`` → label of the sets. ``hedges`` is undecided."""


def case(row: LabelledRow) -> Case:
    """Convert one row of a labelled set that labels stances."""
    tools = tuple(row.items("tools"))
    query = Query(row.text("id"), "chat", ({"role": "user", "content": row.text("question")},), tools)
    return Case(query, answer(row.text("response")), row.one_of("label", {name: name for name in LABELS}))


def decide(verdict: Verdict) -> Decision:
    """Return the stance in a verdict."""
    stance, rule = str(verdict.detail.get("stance")), str(verdict.detail.get("stance_rule"))
    return Decision(STANCES.get(stance), verdict.detail.get("stance_confidence"), (rule,), "stance", stance)


KIND = Kind(
    ("stance_when2call",),
    case,
    verifier=("verifier=posed", "verifier.refusals=null", "sandbox=none"),
    decide=decide,
    positive=frozenset({"request_for_info", "cannot_answer"}),
)
