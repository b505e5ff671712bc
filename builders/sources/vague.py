"""Prompts that cannot be answered as they stand because they do not say what they are about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from bestofn.builders.protocols import Source
from bestofn.builders.records import Query, Reference

SHORT = 9  # words up to which a bare pronoun has nothing to stand for
LONG = 60  # words from which a prompt may well hold what it points to
LONGEST = 2_000  # characters, for a text without blanks
_THING = (
    r"(?:code|text|table|image|picture|file|data|function|figure|diagram|passage|list|article|essay|paragraph|query)"
)
_POINTS = re.compile(
    rf"\b(?:the|this|that|my)\s(?:following|above|attached|below|given|enclosed)?\s?{_THING}\b(?!\s(?:of|for|that|which|called|named))|"
    rf"\b(?:the|this)\s(?:following|above|attached|below)\b",
    re.IGNORECASE,
)
_BARE = re.compile(r"\b(?:it|this|that|them|these|those)\b(?!\s(?:is|are|was|were)\b)", re.IGNORECASE)
_EARLIER = re.compile(
    r"\b(?:as|like)\s(?:we\s|I\s)?(?:discussed|mentioned|said|agreed|described|before|last\stime)\b|"
    r"\b(?:same|again)\sas\s(?:before|last\stime)\b|\bcontinue\b\W*$",
    re.IGNORECASE,
)
_HOLDS = re.compile(r"```|\n\s*\n|:\s*\S.{20,}|\"[^\"]{8,}\"|“[^”]{8,}”", re.DOTALL)


def vagueness(text: str) -> tuple[str, ...]:
    """Why ``text`` is vague: ``empty``, ``points to nothing``, ``bare pronoun``, ``earlier talk``; () if it is not."""
    words = text.split()
    if not any(character.isalnum() for character in text):
        return ("empty",)
    if len(words) >= LONG or len(text) > LONGEST or _HOLDS.search(text):
        return ()
    reasons = {
        "points to nothing": _POINTS.search(text),
        "bare pronoun": len(words) <= SHORT and _BARE.search(text),
        "earlier talk": _EARLIER.search(text),
    }
    return tuple(reason for reason, found in reasons.items() if found)


class Vague:
    """The vague ones among the single-turn queries of ``source``: split ``vague``, no reference.

    ``metadata`` tells ``posed`` (``vague``), ``flaw`` (the reasons) and ``origin``. They are found by their words, in
    English. The others are counted in ``skipped``.
    """

    def __init__(self, source: Source, *, max_queries: int | None = None) -> None:
        self.source, self.max_queries = source, max_queries
        self.name = f"{source.name}-vague"
        self.skipped: Counter[str] = Counter()

    def __iter__(self) -> Iterator[Query]:
        self.skipped.clear()
        taken = 0
        try:
            for query in self.source:
                if self.max_queries is not None and taken >= self.max_queries:
                    return
                reasons = vagueness(query.text) if len(query.messages) == 1 and not query.tools else ()
                if not reasons:
                    self.skipped["not vague"] += 1
                    continue
                taken += 1
                facts = {"posed": "vague", "flaw": ", ".join(reasons), "origin": query.id}
                yield replace(query, split="vague", reference=Reference(), metadata={**query.metadata, **facts})
        finally:  # also when nobody asks for more
            self.skipped.update(getattr(self.source, "skipped", {}))
