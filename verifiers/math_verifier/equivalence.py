"""Compares the tree of an answer with the tree of the reference: applies the rules in order until one decides.

The order of the arguments matters: the reference determines the precision, whether the order of a list matters, and
whether a unit is required.
"""

from __future__ import annotations

from bestofn.verifiers.math_verifier.arithmetic import Intractable
from bestofn.verifiers.math_verifier.nodes import Node, Number, small
from bestofn.verifiers.math_verifier.rules.bases import numeral
from bestofn.verifiers.math_verifier.rules.conditional import conditional
from bestofn.verifiers.math_verifier.rules.listings import collection, matrix
from bestofn.verifiers.math_verifier.rules.quantities import quantity
from bestofn.verifiers.math_verifier.rules.relations import relation
from bestofn.verifiers.math_verifier.rules.scalars import scalar
from bestofn.verifiers.math_verifier.rules.signs import approximation, plus_minus
from bestofn.verifiers.math_verifier.rules.terms import Equal, Match, Rule, Terms, Unclear
from bestofn.verifiers.math_verifier.rules.texts import text

RULES: tuple[Rule, ...] = (
    conditional,
    approximation,
    plus_minus,
    relation,
    text,
    matrix,
    collection,
    numeral,
    quantity,
)


def compare(reference: Node, candidate: Node, terms: Terms) -> Match:
    """Compare ``candidate`` with ``reference`` in bounded time. The match is ``Unclear`` if the rules cannot decide."""
    if reference == candidate:
        return Equal("identical")
    if not (small(reference) and small(candidate)):
        return Unclear("too large")
    try:
        return _compare(reference, candidate, terms)
    except Intractable as error:
        return Unclear(f"out of bounds: {error}")
    except RecursionError:
        return Unclear("nested too deeply")


def _compare(reference: Node, candidate: Node, terms: Terms) -> Match:
    if reference == candidate:
        return Equal("identical")
    if isinstance(reference, Number) and isinstance(candidate, Number):
        return scalar(reference, candidate, terms)
    for rule in RULES:
        match = rule(reference, candidate, terms, _compare)
        if match is not None:
            return match
    return scalar(reference, candidate, terms)
