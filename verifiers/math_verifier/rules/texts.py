"""Compares answers that are words, not mathematics."""

from __future__ import annotations

from bestofn.verifiers.math_verifier.nodes import Node, Text
from bestofn.verifiers.math_verifier.rules.terms import Match, Same, Terms


def text(reference: Node, candidate: Node, terms: Terms, same: Same) -> Match | None:
    """Compare two trees if one is a ``Text`` node, otherwise return None.

    Case and punctuation are ignored. Words never equal a value.
    """
    if isinstance(reference, Text) and isinstance(candidate, Text):
        return Match(_folded(reference.text) == _folded(candidate.text), "text")
    if isinstance(reference, Text) or isinstance(candidate, Text):
        return Match(False, "text against a value", 0.9)
    return None


def _folded(text: str) -> str:
    return " ".join("".join(c if c.isalnum() else " " for c in text.casefold()).split())
