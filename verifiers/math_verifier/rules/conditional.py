"""Compares two answers if one of them has side conditions, such as ``\\frac{x+1}{x-1}, x \\ne 1``."""

from __future__ import annotations

from bestofn.verifiers.math_verifier.conditions import split
from bestofn.verifiers.math_verifier.intervals import as_ranges
from bestofn.verifiers.math_verifier.nodes import Node
from bestofn.verifiers.math_verifier.rules.terms import Match, Same, Terms, Unclear, noted


def conditional(reference: Node, candidate: Node, terms: Terms, same: Same) -> Match | None:
    """Compare the values of two trees if one of them has conditions, otherwise return None.

    If only one side has conditions, these are ignored. If both sides have conditions, and only the conditions differ,
    the match is unclear.
    """
    ours, theirs = split(reference), split(candidate)
    if not ours.conditions and not theirs.conditions:
        return None
    if as_ranges(ours.value) is not None and as_ranges(reference) is not None and as_ranges(candidate) is not None:
        return None  # a union such as "x = 1, x > 3"
    match = same(ours.value, theirs.value, terms)
    if not match.equal:
        return match
    for mine, other in zip(ours.conditions, theirs.conditions, strict=False):
        if same(mine, other, terms).equal is False:
            return Unclear("equal values under different conditions")
    return noted(match, "under a condition")
