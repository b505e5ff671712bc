"""Finds vague prompts: prompts that no answer can satisfy, because they refer to missing text or a missing object.

``conf/dataset/vague.yaml`` uses it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from bestofn.builders.protocols import Source
from bestofn.builders.records import PositiveCount, Query, Reference
from bestofn.builders.sources.mapped import skipped_by

SHORT = 9  # words: in a prompt up to this length, a pronoun such as "it" has no noun to refer to
LONG = 60  # words: a prompt of at least this length may contain the text to which it refers
MAX_CHARS = 2_000  # like ``LONG``, but in characters: for a text that has no blanks
_THING = (
    r"(?:code|text|table|image|picture|file|data|function|figure|diagram|passage|list|article|essay|paragraph|query)"
)
_REFERS = re.compile(
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
_CONTAINS_MATERIAL = re.compile(r"```|\n\s*\n|:\s*\S.{20,}|\"[^\"]{8,}\"|“[^”]{8,}”", re.DOTALL)


def vagueness(text: str) -> tuple[str, ...]:
    """Return the reasons why ``text`` is vague; () if it is not vague.

    ``empty``: the text has no letter or digit. ``points to nothing``: the text refers to missing material ("the table
    below"). ``bare pronoun``: a short text has a pronoun such as "it". ``earlier talk``: the text refers to an earlier
    conversation.
    """
    words = text.split()
    if not any(character.isalnum() for character in text):
        return ("empty",)
    if len(words) >= LONG or len(text) > MAX_CHARS or _CONTAINS_MATERIAL.search(text):
        return ()
    reasons = {
        "points to nothing": _REFERS.search(text),
        "bare pronoun": len(words) <= SHORT and _BARE.search(text),
        "earlier talk": _EARLIER.search(text),
    }
    return tuple(reason for reason, matches in reasons.items() if matches)


class Vague:
    """The vague single-turn queries of ``source`` (see ``vagueness``), in the split ``vague`` and with no reference.

    ``metadata`` has ``posed`` (``vague``), ``flaw`` (the reasons) and ``origin`` (the id of the query). Only English is
    recognised. ``skipped`` counts all other queries.
    """

    def __init__(self, source: Source, *, max_queries: PositiveCount | None = None) -> None:
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
        finally:  # also if the caller stops early
            self.skipped.update(skipped_by(self.source))
