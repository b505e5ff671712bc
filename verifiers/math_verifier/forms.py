"""A form is an answer that was understood. Two answers can differ only if both have a form.

``form`` returns the form of a tree, or None if a part of the tree is text. Letters, truth values, times and dates are
also forms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from bestofn.verifiers.math_verifier.arithmetic import is_constant
from bestofn.verifiers.math_verifier.nodes import (
    COLLECTIONS,
    PLUS_MINUS,
    RELATIONS,
    Apply,
    Node,
    Number,
    Symbol,
    Text,
    head,
    heads,
)

Kind = Literal[
    "number", "expression", "quantity", "collection", "set of reals", "matrix", "equation", "inequality", "numeral",
    "choice", "truth value", "time", "date", "currency", "no value",
]  # fmt: skip
Value: TypeAlias = Number | Symbol | Apply | str | bool | frozenset[str] | tuple[int, int, int | None]

_QUANTITIES = frozenset({"unit", "percent", "money", "deg", "scale"})
_SPECIAL_FORMS = frozenset({"congruent", "cases"})  # such trees have no form, so they can be equal but never differ
_SETS = frozenset({"union", "cap", "setminus"})


@dataclass(frozen=True, slots=True)
class Form:
    """An answer that was understood: its kind, and its tree or value."""

    kind: Kind
    value: Value


def form(node: Node) -> Form | None:
    """Return the form of ``node``, or None if a part of it is text that is not mathematics."""
    if isinstance(node, Number):
        return Form("number", node)
    if isinstance(node, Text) or not _is_mathematics(node):
        return None
    return Form(kind(node), node)


def kind(node: Number | Symbol | Apply) -> Kind:
    """Return the kind of answer that the tree ``node`` represents. The tree must not contain text."""
    name = head(node)
    if name in _QUANTITIES:
        return "quantity"
    if name in COLLECTIONS:
        return "collection"
    if name in _SETS or node == Symbol("mathbb_R"):
        return "set of reals"
    if name == "matrix":
        return "matrix"
    if name == "=":
        return "equation"
    if name in RELATIONS or name == "chain":
        return "inequality"
    if name == "base":
        return "numeral"
    return "number" if is_constant(node) else "expression"


def is_value(node: Node) -> bool:
    """Return whether ``node`` is one number or one quantity. False for ±, which states two values."""
    known = form(node)
    return known is not None and known.kind in ("number", "quantity") and not has_both_signs(node)


def has_both_signs(node: Node) -> bool:
    """Return whether a part of ``node`` is ± or ∓."""
    return not heads(node).isdisjoint(PLUS_MINUS)


def _is_mathematics(node: Node) -> bool:
    """Return whether no part of the tree is text. Names of units and digits of numerals do not count as text."""
    stack: list[Node] = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, Text) or head(part) in _SPECIAL_FORMS:
            return False
        if isinstance(part, Apply) and part.head != "base":
            stack.extend(part.args[:1] if part.head == "unit" else part.args)
    return True
