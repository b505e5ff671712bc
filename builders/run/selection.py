"""Parses the setting ``where``, which selects candidates by words.

Examples: ``where=failed``, ``where=error+split:math``, ``where=truncated,refused``. A comma means *or*, a plus
means *and*, and ``!`` before a word means *not*. Used by ``bestofn regenerate``.

    failed abstained passed error unverified    by outcome (unverified: any outcome but pass)
    truncated refused filtered empty            by response: cut off, a refusal, stopped by a filter, no text
    split:NAME  query:ID  candidate:NUMBER  model:NAME  verifier:NAME  arm:greedy  variant:NAME
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bestofn.builders.errors import ConfigError
from bestofn.builders.formats.nearest_match import did_you_mean
from bestofn.builders.records import Row, content_text


@dataclass(frozen=True, slots=True)
class JudgedRow:
    """One candidate, its verdict, and the row of its query."""

    row: Row
    candidate: Row
    verdict: Row


Condition = Callable[[JudgedRow], bool]

WORDS: Mapping[str, Condition] = {
    "all": lambda one: True,
    "passed": lambda one: one.verdict["outcome"] == "pass",
    "failed": lambda one: one.verdict["outcome"] == "fail",
    "abstained": lambda one: one.verdict["outcome"] == "abstain",
    "error": lambda one: bool(one.candidate["error"]) or one.verdict["outcome"] == "error",
    "unverified": lambda one: one.verdict["outcome"] != "pass",
    "truncated": lambda one: one.candidate["stop_reason"] == "length",
    "filtered": lambda one: one.candidate["stop_reason"] == "content_filter",
    "refused": lambda one: one.candidate["stop_reason"] == "refusal" or _is_refusal(one.verdict),
    "empty": lambda one: not one.candidate["error"] and not _text(one.candidate).strip(),
}
FIELDS: Mapping[str, Callable[[JudgedRow], object]] = {
    "split": lambda one: one.row["split"],
    "query": lambda one: one.row["query_id"],
    "candidate": lambda one: one.candidate["index"],
    "model": lambda one: one.candidate["model"],
    "verifier": lambda one: one.verdict["verifier"],
    "arm": lambda one: one.candidate["arm"],
    "variant": lambda one: one.candidate["variant"],
}


def condition(where: str) -> Condition:
    """Parse ``where`` and return its condition. Raises ``ConfigError`` if a word is unknown."""
    alternatives = [[_term(word.strip()) for word in part.split("+")] for part in where.split(",")]
    return lambda one: any(all(term(one) for term in terms) for terms in alternatives)


def selected_positions(row: Row, wanted: Condition) -> list[int]:
    """Return the positions of the candidates in ``row`` that satisfy ``wanted``."""
    pairs = zip(row["candidates"], row["verdicts"], strict=True)
    return [
        position for position, (candidate, verdict) in enumerate(pairs) if wanted(JudgedRow(row, candidate, verdict))
    ]


def _term(word: str) -> Condition:
    if word.startswith("!"):
        inner = _term(word[1:])
        return lambda one: not inner(one)
    field, colon, value = word.partition(":")
    if colon and field in FIELDS:
        read = FIELDS[field]
        return lambda one: str(read(one)) == value
    if word in WORDS:
        return WORDS[word]
    known = [*WORDS, *(f"{name}:…" for name in FIELDS)]
    hint = did_you_mean(field, [*WORDS, *FIELDS])
    raise ConfigError(
        f"where: the condition {word!r} is not known{hint} Known conditions: {', '.join(known)}. "
        "Join conditions with `+` (and) or a comma (or)."
    )


def _is_refusal(verdict: Row) -> bool:
    return bool(((verdict["detail"] or {}).get("refusal") or {}).get("is_refusal"))


def _text(candidate: Row) -> str:
    turns = [message for message in candidate["messages"] if message.get("role") == "assistant"]
    return content_text(turns[-1].get("content")) if turns else ""
