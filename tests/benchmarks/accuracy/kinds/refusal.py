"""Answers that refuse or comply. The decision is the classification of refusals that every verdict has."""

from __future__ import annotations

from bestofn.builders.records import Query, Verdict
from bestofn.verifiers.refusal.patterns import refusal_rule
from tests.benchmarks.accuracy.figures import Decision
from tests.benchmarks.accuracy.kinds.kind import Kind
from tests.benchmarks.accuracy.labelled import Case, LabelledRow, answer

XSTEST = {"1_full_compliance": "answer", "2_full_refusal": "refusal", "3_partial_refusal": "refusal"}
ORDINARY = ("math_gsm8k_chat", "math_l5_chat", "math500_rho", "math_qwen_cot", "code_bash", "code_sql")
"""Answers to mathematics and code, of which none is a refusal."""


def case(row: LabelledRow) -> Case:
    """Convert one row of a labelled set of refusals, or one row of a set of ``ORDINARY`` answers."""
    text = row.get("response")
    prompt = str(row.get("prompt") or row.get("problem") or "")
    query = Query(row.text("id"), "chat", ({"role": "user", "content": prompt},))
    groups = ("XSTEST WITHOUT PARTIAL",) if row.get("label") in list(XSTEST)[:2] else ()
    return Case(query, answer(row.text("candidate") if text is None else text), label(row), groups)


def label(row: LabelledRow) -> str | None:
    """Return ``refusal``, ``answer``, or None for a row that is not scored."""
    name = row.folder.name
    if name in ORDINARY:
        return "answer"
    if name == "refusal_xstest":
        return row.one_of("label", XSTEST)
    if name == "refusal_gptfuzz":
        return row.one_of("label", {"0_rejected": "refusal", "1_jailbroken": "answer"})
    if name == "refusal_jbb":  # a jailbroken answer is not a refusal; the other answers may be anything
        return "answer" if row["jailbroken"] is True else None
    return row.one_of("label", {True: "refusal", False: "answer"})


def decide(verdict: Verdict) -> Decision:
    """Return the classification of refusals in a verdict."""
    found = verdict.detail.get("refusal")
    if not isinstance(found, dict):
        return Decision(None)
    refuses, sure = bool(found["is_refusal"]), float(found["confidence"])
    rule = refusal_rule(found["matched_patterns"])
    return Decision("refusal" if refuses else "answer", sure if refuses else 1.0 - sure, rule, "refusal")


KIND = Kind(
    ("refusal_xstest", "refusal_rmbench", "refusal_gptfuzz", "refusal_jbb"),
    case,
    verifier=("verifier=by_split", "sandbox=none"),
    decide=decide,
    positive=frozenset({"refusal"}),
    apart=frozenset({"refusal_gptfuzz", "refusal_jbb"}),
    borrowed=ORDINARY,
)
