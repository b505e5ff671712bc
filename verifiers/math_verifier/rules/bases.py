"""Compares numerals with a base, such as ``204_5``."""

from __future__ import annotations

from bestofn.verifiers.math_verifier.nodes import Apply, Node, Number, head
from bestofn.verifiers.math_verifier.rules.scalars import scalar
from bestofn.verifiers.math_verifier.rules.terms import Equal, Match, Same, Terms, Unclear, decided, different


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
            return Equal("digits in the same base")
        return different("another numeral", reference, candidate)
    numeral, other = (reference, candidate) if left == "base" else (candidate, reference)
    digits_text = numeral.args[0].text  # type: ignore[union-attr]
    if isinstance(other, Number) and str(other.value) == digits_text:
        return Equal("the digits, without their base")
    value = _numeral_value(numeral)
    if value is None:
        return _in_any_base(digits_text, other, reference, candidate)
    match = scalar(other, Number(value), terms)
    if left == "base":  # the reference asks for the digits in its base
        return Unclear("the value of the numeral, in another base") if match.equal else match
    return decided(match.equal, "value of a numeral", reference, candidate)


def _in_any_base(digits: str, other: Node, reference: Node, candidate: Node) -> Match:
    """Compare a numeral whose base is unknown, such as ``204_b``, with the tree ``other``.

    If ``other`` is a number, and ``digits`` have another value in every base, the trees differ. Otherwise the match is
    unclear.
    """
    if not isinstance(other, Number) or not digits.isalnum():
        return Unclear("a numeral without a value")
    for base in range(2, 37):
        try:
            if int(digits, base) == other.value:
                return Unclear("a numeral in an unknown base")
        except ValueError:
            continue
    return different("a numeral in any base", reference, candidate)


def _base(node: Node) -> str:
    return node.args[1].text.strip("{}() ") if isinstance(node, Apply) else ""  # type: ignore[union-attr]


def _numeral_value(node: Node) -> int | None:
    base = _base(node)
    if not base.isdigit() or not 2 <= int(base) <= 36:
        return None
    try:
        return int(node.args[0].text, int(base))  # type: ignore[union-attr]
    except ValueError:
        return None
