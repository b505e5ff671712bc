"""Compares numerals with a base, such as ``204_5``."""

from __future__ import annotations

from bestofn.verifiers.math_verifier.nodes import Apply, Node, Number, head
from bestofn.verifiers.math_verifier.rules.scalars import scalar
from bestofn.verifiers.math_verifier.rules.terms import Match, Same, Terms


def numeral(reference: Node, candidate: Node, terms: Terms, same: Same) -> Match | None:
    """Compare two trees if one is a numeral with a base, otherwise return None.

    If the digits are equal and only the base is missing, the trees match with a lower confidence.
    """
    left, right = head(reference), head(candidate)
    if "base" not in (left, right):
        return None
    if left == right == "base":
        same_base = _base(reference) == _base(candidate) or not _base(candidate).isdigit()
        if reference.args[0] == candidate.args[0] and same_base:  # type: ignore[union-attr]
            return Match(True, "digits in the same base")
        return Match(False, "another numeral")
    numeral, other = (reference, candidate) if left == "base" else (candidate, reference)
    digits_text = numeral.args[0].text  # type: ignore[union-attr]
    if isinstance(other, Number) and str(other.value) == digits_text:
        return Match(True, "the digits, without their base", 0.8)
    if left != "base":  # the reference is a plain number, so compare the values
        value = _numeral_value(candidate)
        return Match(value is not None and scalar(reference, Number(value), terms).equal, "value of a numeral", 0.9)
    return Match(False, "the numeral in its base is asked for")


def _base(node: Node) -> str:
    return node.args[1].text.strip("{} ") if isinstance(node, Apply) else ""  # type: ignore[union-attr]


def _numeral_value(node: Node) -> int | None:
    base = _base(node)
    if not base.isdigit() or not 2 <= int(base) <= 36:
        return None
    try:
        return int(node.args[0].text, int(base))  # type: ignore[union-attr]
    except ValueError:
        return None
