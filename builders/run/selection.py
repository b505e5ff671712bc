"""Which candidates of a run are meant: ``failed``, ``error+split:math``, ``truncated,refused`` …

A comma means *or*, a plus means *and*, ``!`` before a word means *not*:

    failed abstained passed error unverified    by the verdict's outcome (unverified: anything but a pass)
    truncated refused filtered empty            by the answer: cut off, refused in words, stopped by a filter, nothing
    split:NAME  query:ID  candidate:NUMBER  model:NAME  verifier:NAME  arm:greedy  variant:NAME
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bestofn.builders.errors import ConfigError
from bestofn.builders.formats.nearest_match import did_you_mean
from bestofn.builders.records import content_text

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Chosen:
    """One candidate as it stands in its row."""

    row: Row
    candidate: Row
    verdict: Row


Condition = Callable[[Chosen], bool]

WORDS: Mapping[str, Condition] = {
    "all": lambda one: True,
    "passed": lambda one: one.verdict["outcome"] == "pass",
    "failed": lambda one: one.verdict["outcome"] == "fail",
    "abstained": lambda one: one.verdict["outcome"] == "abstain",
    "error": lambda one: bool(one.candidate["error"]) or one.verdict["outcome"] == "error",
    "unverified": lambda one: one.verdict["outcome"] != "pass",
    "truncated": lambda one: one.candidate["stop_reason"] == "length",
    "filtered": lambda one: one.candidate["stop_reason"] == "content_filter",
    "refused": lambda one: one.candidate["stop_reason"] == "refusal" or _said_no(one.verdict),
    "empty": lambda one: not one.candidate["error"] and not _text(one.candidate).strip(),
}
FIELDS: Mapping[str, Callable[[Chosen], Any]] = {
    "split": lambda one: one.row["split"],
    "query": lambda one: one.row["query_id"],
    "candidate": lambda one: one.candidate["index"],
    "model": lambda one: one.candidate["model"],
    "verifier": lambda one: one.verdict["verifier"],
    "arm": lambda one: one.candidate["arm"],
    "variant": lambda one: one.candidate["variant"],
}


def condition(where: str) -> Condition:
    """The condition that ``where`` describes. Raises ``ConfigError`` with the nearest word for one it does not know."""
    ways = [[_term(word.strip()) for word in way.split("+")] for way in where.split(",")]
    return lambda one: any(all(term(one) for term in way) for way in ways)


def chosen_positions(row: Row, wanted: Condition) -> list[int]:
    """Positions of the candidates of ``row`` that ``wanted`` is true of."""
    pairs = zip(row["candidates"], row["verdicts"], strict=True)
    return [position for position, (candidate, verdict) in enumerate(pairs) if wanted(Chosen(row, candidate, verdict))]


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
    raise ConfigError(f"where: {word!r} is not known{hint} Known: {', '.join(known)}; + means and, a comma means or.")


def _said_no(verdict: Row) -> bool:
    return bool(((verdict["detail"] or {}).get("refusal") or {}).get("is_refusal"))


def _text(candidate: Row) -> str:
    said = [message for message in candidate["messages"] if message.get("role") == "assistant"]
    return content_text(said[-1].get("content")) if said else ""
