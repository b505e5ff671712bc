"""Converts number literals to nodes: integers, decimals, scientific notation and repeating decimals."""

from __future__ import annotations

from fractions import Fraction

from bestofn.verifiers.math_verifier.nodes import Apply, Node, Number


class Unsupported(ValueError):
    """Raised if a text is not mathematics, or uses mathematics that the grammar does not support."""


def number(literal: str) -> Number:
    """Return the exact number of a literal such as ``1,234.50`` or ``6e-24``.

    Raises ``Unsupported`` if the absolute value of the exponent exceeds 5000.
    """
    if literal.isdecimal():
        return Number(int(literal))
    mantissa, _, exponent = literal.replace(",", "").lower().partition("e")
    whole, point, digits = mantissa.partition(".")
    shift = int(exponent) if exponent else 0
    if abs(shift) > 5000:
        raise Unsupported("the exponent of the literal is out of bounds")
    if not point and not exponent:
        return Number(int(whole))
    place = shift - len(digits)
    written = int((whole + digits) or "0")
    if place >= 0:
        return Number(written * 10**place, place)
    value = Fraction(written, 10**-place)
    return Number(value.numerator if value.denominator == 1 else value, place)


def negative(node: Node) -> Node:
    """Return the tree of ``-node``."""
    if isinstance(node, Number):
        return Number(-node.value, node.place)
    return Apply("neg", (node,))


def is_plain_integer(node: Node) -> bool:
    """Return whether ``node`` is an integer that was written with no decimal point."""
    return isinstance(node, Number) and isinstance(node.value, int) and node.place is None


def times(left: Node, right: Node) -> Node:
    """Return the product of two trees. ``2.3 \\times 10^4`` becomes one decimal, which keeps its precision."""
    match left, right:
        case Number(), Apply("^", (Number(10), Number(int() as power, None))) if abs(power) < 1000:
            value = left.value * Fraction(10) ** power
            return Number(value.numerator if value.denominator == 1 else value, (left.place or 0) + power)
        case Apply("*", _), _:
            return Apply("*", (*left.args, right))  # type: ignore[union-attr]
    return Apply("*", (left, right))


def repeating(literal: str, cycle: str) -> Node:
    """Return the exact number of a repeating decimal: ``0.1(6)``, where ``literal`` is 0.1 and ``cycle`` is 6."""
    if not cycle.isdigit():
        raise Unsupported("a repeating decimal needs digits under its bar")
    whole, _, fixed = literal.replace(",", "").partition(".")
    nines = (10 ** len(cycle) - 1) * 10 ** len(fixed)
    return Number(Fraction(int(whole + fixed or "0"), 10 ** len(fixed)) + Fraction(int(cycle), nines))
