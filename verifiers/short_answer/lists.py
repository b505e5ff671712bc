"""Splits a list in a text into its items."""

from __future__ import annotations

import re

from bestofn.verifiers.short_answer.tokens import FUNCTION_WORDS, forms, plain

MOST_WORDS = 5  # words of one item
MOST_ITEMS = 50
_SEPARATOR = re.compile(r"\s*(?:[,;\n]\s*(?:and\s+|or\s+)?|\s+(?:and|&)\s+)\s*")
MARK = re.compile(r"^\s*(?:\d{1,2}[.)]|[-•])\s*")


def items(text: str) -> list[tuple[str, ...]]:
    """Return the items of a list, as normal forms; [] if an item is too long or the list has too many items."""
    parts = [forms(MARK.sub("", part)) for part in _SEPARATOR.split(plain(text).strip(" ."))]
    found = [tuple(form for form in part if form not in FUNCTION_WORDS) for part in parts]
    found = [item for item in found if item]
    return found if len(found) <= MOST_ITEMS and all(len(item) <= MOST_WORDS for item in found) else []
