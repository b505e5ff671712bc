"""Mathematical problems: final answers with a reference answer."""

from __future__ import annotations

import re

from bestofn.builders.records import Query, Reference
from tests.benchmarks.accuracy.kinds.kind import Kind
from tests.benchmarks.accuracy.labelled import Case, LabelledRow, answer

PLAIN = re.compile(r"-?\d+")
NO_FINAL_ANSWER = ("math_units_scibench", "math_grader_conformity")  # no answer was extracted by hand for these
BARE = "math_hardverify"  # its candidates are bare answers, not whole outputs


def case(row: LabelledRow) -> Case:
    """Convert one row of a labelled set of mathematics."""
    name, gold, text = row.folder.name, row.text("gold"), row.text("candidate")
    if name == BARE:
        text = f"\\boxed{{{text}}}"
    options = tuple(map(str, row.get("options") or ()))
    query = Query(
        row.text("id"),
        "math",
        ({"role": "user", "content": str(row.get("problem") or "")},),
        reference=Reference(answer=gold, choices=options),
    )
    hard = name not in (*NO_FINAL_ANSWER, BARE) and is_hard(row.get("final_answer"), gold)
    return Case(query, answer(text), row.outcome(), ("HARD",) if hard else (), row.values)


def is_hard(final: object, gold: str) -> bool:
    """Return whether answer and reference are different strings and not both plain integers."""
    return final != gold and not (PLAIN.fullmatch(str(final)) and PLAIN.fullmatch(gold))


KIND = Kind(
    (
        "math500_rho",
        "math_finance_units",
        "math_grader_conformity",
        "math_gsm8k_chat",
        "math_gsm8k_openai",
        "math_l5_chat",
        "math_mathcoder",
        "math_qwen_cot",
        "math_theoremqa",
        "math_units_scibench",
        "mathvision",
        BARE,
    ),
    case,
    apart=frozenset({BARE}),
)
