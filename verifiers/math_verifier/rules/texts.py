"""Compares answers that are words, not mathematics."""

from __future__ import annotations

from bestofn.verifiers.math_verifier.nodes import Node, Text
from bestofn.verifiers.math_verifier.rules.terms import Equal, Match, Same, Terms, Unclear


def text(reference: Node, candidate: Node, terms: Terms, same: Same) -> Match | None:
    """Compare two trees if one is a ``Text`` node, otherwise return None.

    Case and punctuation are ignored. Other differences are ``Unclear``, because words are not interpreted.
    """
    if isinstance(reference, Text) and isinstance(candidate, Text):
        return Equal("text") if _folded(reference.text) == _folded(candidate.text) else Unclear("text")
    if isinstance(reference, Text) or isinstance(candidate, Text):
        return Unclear("text against a value")
    return None


def _folded(text: str) -> str:
    return " ".join("".join(c if c.isalnum() else " " for c in text.casefold()).split())
