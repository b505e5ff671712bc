"""Constraints on the form of answers. The verifier is strict, and the labels are verdicts of the official checkers."""

from __future__ import annotations

import re
from collections.abc import Callable

from bestofn.builders.records import Query, Reference
from tests.benchmarks.accuracy.figures import Result
from tests.benchmarks.accuracy.kinds.kind import Kind
from tests.benchmarks.accuracy.labelled import Case, LabelledRow, answer

CONTESTED: dict[str, Callable[[str, dict], bool]] = {
    # the official checker asks langdetect, which does not know names and slogans in capital letters
    "en:change_case:english_capital": lambda text, kwargs: text.isupper(),
    "en:change_case:english_lowercase": lambda text, kwargs: text.islower() and len(text.split()) < 10,
    "es:change_case:spanish_capital": lambda text, kwargs: text.isupper() and len(text.split()) < 10,
    # the official checker knows only the straight quotation mark
    "en:startend:quotation": lambda text, kwargs: text.strip()[:1] in "“„«" and text.strip()[-1:] in "”“»",
    "en:startend:end_checker": lambda text, kwargs: text.strip()[-1:] in "”“»",
    # langdetect says zh-cn, which is never equal to zh
    "fr:language:response_language": lambda text, kwargs: kwargs["language"] == "zh",
    # the prompt asks for lower-case options, the checker for capitalised ones
    "fr:detectable_format:constrained_response": lambda text, kwargs: text.strip() in ("oui.", "non.", "peut-être."),
    # the official checker divides the text into morphemes, so it never finds a keyword of several morphemes
    "ja:keywords:existence": lambda text, kwargs: all(keyword in text for keyword in kwargs["keywords"]),
    "ja:keywords:frequency": lambda text, kwargs: text.count(kwargs["keyword"]) >= kwargs["frequency"],
    # the official checker stops at the iteration mark
    "ja:letters:furigana": lambda text, kwargs: "々" in text,
    # the official checker does not count nouns before list markers and asterisks
    "ja:detectable_format:nominal_ending": lambda text, kwargs: True,
    # the official checker uses a part-of-speech tagger that takes the verb "build" for a name
    "words:start_verb": lambda text, kwargs: re.match(r"Build\b", text) is not None,
}
"""Kind → whether the label of an answer that breaks it is contested; docs/verifiers.md gives the reasons."""


def case(row: LabelledRow) -> Case:
    """Convert one row of a labelled set of instruction following."""
    ids, kwargs, text = row.items("instruction_ids"), row.items("kwargs"), row.text("candidate")
    checks = {"constraints": {"instruction_ids": ids, "kwargs": kwargs}}
    messages = ({"role": "user", "content": row.text("prompt")},)
    query = Query(row.text("id"), "constraints", messages, reference=Reference(checks=checks))
    each = row.get("label_each") or [None] * len(ids)
    contested = [
        not label and name in CONTESTED and CONTESTED[name](text, arguments)
        for name, arguments, label in zip(ids, kwargs, each, strict=True)
    ]
    return Case(query, answer(text), row.outcome(), (row.text("language").upper(),), {"contested": any(contested)})


def uncontested(result: Result) -> tuple[str, ...]:
    """Return the groups of uncontested rows in which the result counts; () if it is a pass in a contested row."""
    if result.case.row["contested"] and result.decision.said == "pass":
        return ()
    return ("UNCONTESTED", *(f"UNCONTESTED {group}" for group in result.case.groups))


KIND = Kind(
    ("if_mifeval", "if_ifbench"),
    case,
    verifier=("verifier=constraints",),
    more_groups=uncontested,
)
