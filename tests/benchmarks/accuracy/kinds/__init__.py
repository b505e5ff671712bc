"""The kinds of labelled sets, each with the verifier that decides it."""

from __future__ import annotations

from tests.benchmarks.accuracy.kinds import (
    calling,
    code,
    constraints,
    dialogues,
    judge,
    math,
    mcq,
    qa,
    refusal,
    stance,
    structured,
    tools,
)
from tests.benchmarks.accuracy.kinds.kind import Kind

KINDS: dict[str, Kind] = {
    "math": math.KIND,
    "code": code.KIND,
    "tools": tools.KIND,
    "refusal": refusal.KIND,
    "judge": judge.KIND,
    "qa": qa.QUESTIONS,
    "short": qa.SHORT,
    "exact": qa.EXACT,
    "mcq": mcq.KIND,
    "stance": stance.KIND,
    "calling": calling.KIND,
    "dialogues": dialogues.KIND,
    "constraints": constraints.KIND,
    "structured": structured.KIND,
    "steps": Kind(("steps_mrben",), without="there is no verifier of the steps of a solution yet"),
}
