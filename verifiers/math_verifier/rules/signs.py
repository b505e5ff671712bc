"""Compares answers that state two values: approximations (``a ≈ b``) and plus-minus (``a ± b``)."""

from __future__ import annotations

from itertools import islice, product

from bestofn.verifiers.math_verifier.nodes import PLUS_MINUS, RELATIONS, Apply, Node, head, heads
from bestofn.verifiers.math_verifier.rules.listings import unordered
from bestofn.verifiers.math_verifier.rules.terms import Match, Same, Terms, first_true

MOST_VALUES = 16


def approximation(reference: Node, candidate: Node, terms: Terms, same: Same) -> Match | None:
    """Compare two trees if one is an approximation such as ``sqrt(2) ≈ 1.414``, otherwise return None.

    The trees are equal if one of the two values of the approximation is equal to the other tree.
    """
    if head(reference) == "~":
        return first_true([same(side, candidate, terms) for side in reference.args])  # type: ignore[union-attr]
    if head(candidate) == "~":
        sides = candidate.args  # type: ignore[union-attr]
        return first_true([same(reference, side, terms) for side in sides])
    return None


def plus_minus(reference: Node, candidate: Node, terms: Terms, same: Same) -> Match | None:
    """Compare two trees if one contains ±, otherwise return None. The trees are equal if they have the same values."""
    if heads(reference).isdisjoint(PLUS_MINUS) and heads(candidate).isdisjoint(PLUS_MINUS):
        return None
    left, right = both_signs(reference), both_signs(candidate)
    if len(left) == len(right) == 1:
        return None
    match = unordered(left, right, terms, same)
    if match.equal:
        return match
    free = all_signs(reference), all_signs(candidate)
    if (len(free[0]), len(free[1])) == (len(left), len(right)) or max(map(len, free)) > MOST_VALUES:
        return match
    independent = unordered(*free, terms, same)
    return independent if independent.equal else match


def both_signs(node: Node) -> list[Node]:
    """Return the values of an expression with ±: first with +, then with −.

    For a list, return the values of all items.
    """
    if head(node) in (",", "{}"):
        return [value for item in node.args for value in both_signs(item)]  # type: ignore[union-attr]
    if head(node) in RELATIONS and head(node.args[-1]) != "":  # type: ignore[union-attr]
        return both_signs(node.args[-1])  # type: ignore[union-attr]
    if heads(node).isdisjoint(PLUS_MINUS):
        return [node]
    return [_with_sign(node, 1), _with_sign(node, -1)]


def all_signs(node: Node) -> list[Node]:
    """Return the values of an expression for all combinations of signs. For a list, return the values of all items."""
    if head(node) in (",", "{}"):
        return [value for item in node.args for value in all_signs(item)]  # type: ignore[union-attr]
    if not isinstance(node, Apply):
        return [node]
    choices = product(*(all_signs(part) for part in node.args))
    nodes: list[Node] = [Apply(node.head, parts) for parts in islice(choices, MOST_VALUES + 1)]
    if node.head not in ("pm", "mp"):
        return nodes
    signed = [_with_sign(each, sign) for each in nodes for sign in (1, -1)]
    return signed[: MOST_VALUES + 1]


def _with_sign(node: Node, sign: int) -> Node:
    if not isinstance(node, Apply):
        return node
    args = tuple(_with_sign(part, sign) for part in node.args)
    if node.head in ("pm", "mp"):
        positive = (sign > 0) == (node.head == "pm")
        return Apply("+", (args[0], args[1] if positive else Apply("neg", (args[1],))))
    return Apply(node.head, args)
