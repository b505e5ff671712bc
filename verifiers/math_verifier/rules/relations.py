"""Compares equations, named values (``x = 5``) and inequalities."""

from __future__ import annotations

from fractions import Fraction

from bestofn.verifiers.math_verifier.arithmetic import Undefined, evaluate
from bestofn.verifiers.math_verifier.fields import CONSTANTS
from bestofn.verifiers.math_verifier.intervals import as_ranges, same_ranges
from bestofn.verifiers.math_verifier.nodes import (
    COLLECTIONS,
    RELATIONS,
    Apply,
    Node,
    Number,
    Symbol,
    Text,
    head,
    symbols,
)
from bestofn.verifiers.math_verifier.rules.scalars import close, sample, scalar, tiny
from bestofn.verifiers.math_verifier.rules.terms import Match, Same, Terms


def relation(reference: Node, candidate: Node, terms: Terms, same: Same) -> Match | None:
    """Compare two trees if one is an equation, an inequality or ``x in S``; otherwise return None."""
    left, right = head(reference), head(candidate)
    if not {left, right} & (RELATIONS | {"chain", "cap"}):
        return None
    if left == "in":
        return same(reference.args[-1], candidate, terms)  # type: ignore[union-attr]
    if right == "in":
        return same(reference, candidate.args[-1], terms)  # type: ignore[union-attr]
    if left in ("=",) and right in ("=",):
        return _equations(reference, candidate, terms, same)
    if left == "=" and right not in RELATIONS | {"chain", "cap"}:
        return _named_value(reference, candidate, terms, same)
    if right == "=" and left not in RELATIONS | {"chain", "cap"}:
        return _answered_equation(reference, candidate, terms, same)
    return _inequalities(reference, candidate, terms, same)


def _named_value(reference: Node, candidate: Node, terms: Terms, same: Same) -> Match:
    """Compare a reference that is an equation with an answer that is a value.

    If the reference is ``x = 5``, the answer 5 is equal. If the reference is ``2x + z = 1``, no value is equal.
    """
    sides = reference.args  # type: ignore[union-attr]
    if _is_name(sides[0]):
        return same(sides[-1], candidate, terms)
    if _is_name(sides[-1]):
        return same(sides[0], candidate, terms)
    return Match(False, "an equation is asked for")


def _answered_equation(reference: Node, candidate: Node, terms: Terms, same: Same) -> Match:
    """Compare a reference that is a value with an answer that is an equation.

    The last side of the equation is compared, as in ``6!/2 = 360`` or ``x = 5``. An equation such as ``x - 3z = 0``
    does not state the value 0.
    """
    sides = candidate.args  # type: ignore[union-attr]
    last = sides[-1]
    if last == Number(0) and symbols(sides[0]) and not _is_name(sides[0]):
        return Match(False, "an equation is no value")
    match = same(reference, last, terms)
    if not match.equal and _is_name(last) and not _is_name(sides[0]):
        return same(reference, sides[0], terms)
    return match


def _is_name(node: Node) -> bool:
    """Return whether ``node`` can be the name of a value: a symbol, ``f(x)``, ``\\angle ABC``, or a tuple of names."""
    if isinstance(node, Symbol):
        return node.name not in CONSTANTS or node.name in ("e", "i")
    if isinstance(node, Apply):
        if node.head == "call":
            return True
        if node.head in COLLECTIONS:
            return all(_is_name(part) for part in node.args)
        if node.head == "*":
            return all(isinstance(part, Symbol) or _is_inverse(part) for part in node.args) and len(node.args) <= 4
        if node.head in ("/", "ratio"):
            return all(_is_name(part) for part in node.args)
        return node.head in ("abs", "conjugate") and _is_name(node.args[0])
    return isinstance(node, Text)


def _is_inverse(node: Node) -> bool:
    """Return whether ``node`` is the inverse of a function, such as ``f^{-1}``."""
    return (
        isinstance(node, Apply) and node.head == "^" and node.args[1] == Number(-1) and isinstance(node.args[0], Symbol)
    )


def _unknowns(name: Node) -> frozenset[str]:
    """Return the symbols that an equation with this left side defines: x for ``x``, f for ``f(x)``."""
    return symbols(name.args[0]) if isinstance(name, Apply) and name.head == "call" else symbols(name)


def _equations(reference: Node, candidate: Node, terms: Terms, same: Same) -> Match:
    ours, theirs = _sides(reference), _sides(candidate)
    if _is_name(ours[0]) and _is_name(theirs[0]) and not (symbols(ours[-1]) & _unknowns(ours[0])):
        values = same(ours[-1], theirs[-1], terms)
        if values.equal or not symbols(ours[-1]):
            return Match(values.equal and _same_name(ours[0], theirs[0]), values.method, values.confidence)
    if len(theirs) > 2 and symbols(ours[0]) == symbols(theirs[0]) and not symbols(theirs[-1]):
        return same(ours[-1], theirs[-1], terms)
    left = _difference(ours[0], ours[-1])
    right = _difference(theirs[0], theirs[-1])
    if _is_zero(left) and _is_zero(right):
        return same(ours[-1], theirs[-1], terms)
    return Match(_proportional(left, right, signed=False), "equation up to scale", 0.98)


def _sides(equation: Node) -> list[Node]:
    return list(equation.args) if isinstance(equation, Apply) else [equation]


def _same_name(ours: Node, theirs: Node) -> bool:
    """Return whether two names may denote the same value: ``y`` and ``f(x)`` may, but ``x`` and ``y`` may not."""
    return ours == theirs or not (isinstance(ours, Symbol) and isinstance(theirs, Symbol))


def _is_zero(node: Node) -> bool:
    return not symbols(node)


def _difference(left: Node, right: Node) -> Node:
    return left if right == Number(0) else Apply("+", (left, Apply("neg", (right,))))


def _proportional(left: Node, right: Node, signed: bool) -> bool | None:
    """Return whether left = c·right for a constant c ≠ 0 (c > 0 if ``signed``), or None if undecided.

    The decision is based on the values at fixed points.
    """
    names = symbols(left) | symbols(right)
    ratios = []
    for trial in range(1, 9):
        point = sample(names, trial)
        try:
            above, below = evaluate(left, point), evaluate(right, point)
        except Undefined:
            continue
        if tiny(below) or tiny(above):
            if tiny(below) != tiny(above):
                return False
            continue
        ratios.append(above / below if isinstance(below, float | complex) else Fraction(1) / below * above)
        if len(ratios) == 4:
            break
    if len(ratios) < 2:
        return None
    if any(not close(ratio, ratios[0]) for ratio in ratios[1:]):
        return False
    return not signed or (not isinstance(ratios[0], complex) and ratios[0] > 0)


def _inequalities(reference: Node, candidate: Node, terms: Terms, same: Same) -> Match:
    ours, theirs = as_ranges(reference), as_ranges(candidate)
    if ours is not None and theirs is not None:
        return Match(same_ranges(ours, theirs, lambda a, b: scalar(a, b, terms).equal), "ranges")
    if ours is not None or theirs is not None:
        unread = candidate if theirs is None else reference
        unsolved = head(unread) in RELATIONS or head(unread) in ("chain", "cap")
        return Match(None if unsolved else False, "a range against something else", 0.0 if unsolved else 1.0)
    left, right = _normalised_inequality(reference), _normalised_inequality(candidate)
    if left is None or right is None or left[0] != right[0]:
        return Match(False, "different relations")
    return Match(_proportional(left[1], right[1], signed=left[0] != "!="), "inequality up to scale", 0.98)


def _normalised_inequality(node: Node) -> tuple[str, Node] | None:
    """Return an inequality in the form ``expression < 0`` (or ``<= 0``, ``!= 0``) as (sign, expression); else None."""
    if not isinstance(node, Apply) or node.head not in ("<", "<=", ">", ">=", "!="):
        return None
    left, right = node.args[0], node.args[-1]
    if node.head in (">", ">="):
        left, right = right, left
    return node.head.replace(">", "<"), _difference(left, right)
