"""Differentiates trees, for answers such as ``\\frac{d}{dx}(x^2)``."""

from __future__ import annotations

from collections.abc import Callable

from bestofn.verifiers.math.nodes import Apply, Node, Number, Symbol, symbols, walk
from bestofn.verifiers.math.tokens import Unsupported, negative

MOST_NODES = 400  # maximum size of an expression that is differentiated
MOST_ORDER = 3


def derivative(node: Node, name: str, order: int = 1) -> Node:
    """Return the derivative of ``node`` with respect to the symbol ``name``.

    Raises ``Unsupported`` for functions without a rule and for expressions that are too large.
    """
    if order > MOST_ORDER:
        raise Unsupported("a derivative of high order")
    for _ in range(order):
        if len(walk(node)) > MOST_NODES:
            raise Unsupported("the derivative of a large expression")
        node = _derivative(node, name)
    return node


def primed(node: Node) -> Node:
    """Return ``node`` with a prime: ``y'`` is a different symbol from ``y``, and ``(x^2)'`` is a derivative.

    Raises ``Unsupported`` for numbers and for expressions of several letters.
    """
    if isinstance(node, Symbol):
        return Symbol(node.name + "'")
    letters = [name for name in symbols(node) if name not in ("pi", "e", "i")]
    if not isinstance(node, Apply) or len(letters) != 1:
        raise Unsupported("a prime after an expression without a single letter")
    return derivative(node, letters[0])


def _derivative(node: Node, name: str) -> Node:
    if name not in symbols(node):
        return Number(0)
    if isinstance(node, Symbol):
        return Number(1)
    if not isinstance(node, Apply):
        raise Unsupported("the derivative of text")
    rule = _RULES.get(node.head)
    if rule is not None:
        return rule(node.args, name)
    outer = _OUTER.get(node.head)
    if outer is None or len(node.args) != 1:
        raise Unsupported(f"the derivative of {node.head}")
    return Apply("*", (outer(node.args[0]), _derivative(node.args[0], name)))


def _sum(args: tuple[Node, ...], name: str) -> Node:
    return Apply("+", tuple(_derivative(part, name) for part in args))


def _product(args: tuple[Node, ...], name: str) -> Node:
    terms = [Apply("*", (*args[:at], _derivative(part, name), *args[at + 1 :])) for at, part in enumerate(args)]
    return Apply("+", tuple(terms))


def _quotient(args: tuple[Node, ...], name: str) -> Node:
    top, bottom = args
    left, right = Apply("*", (_derivative(top, name), bottom)), Apply("*", (top, _derivative(bottom, name)))
    return Apply("/", (Apply("+", (left, negative(right))), _square(bottom)))


def _power(args: tuple[Node, ...], name: str) -> Node:
    base, exponent = args
    if name not in symbols(exponent):
        lower = Apply("^", (base, Apply("+", (exponent, Number(-1)))))
        return Apply("*", (exponent, lower, _derivative(base, name)))
    if base == Symbol("e"):
        return Apply("*", (Apply("^", args), _derivative(exponent, name)))
    inner = _derivative(Apply("*", (exponent, Apply("ln", (base,)))), name)
    return Apply("*", (Apply("^", args), inner))


def _square(node: Node) -> Node:
    return Apply("^", (node, Number(2)))


def _over(node: Node) -> Node:
    return Apply("/", (Number(1), node))


_RULES: dict[str, Callable[[tuple[Node, ...], str], Node]] = {
    "+": _sum,
    "*": _product,
    "/": _quotient,
    "^": _power,
    "neg": lambda args, name: negative(_derivative(args[0], name)),
}
_OUTER: dict[str, Callable[[Node], Node]] = {
    "sqrt": lambda x: _over(Apply("*", (Number(2), Apply("sqrt", (x,))))),
    "ln": _over,
    "log": _over,
    "sin": lambda x: Apply("cos", (x,)),
    "cos": lambda x: negative(Apply("sin", (x,))),
    "tan": lambda x: _square(Apply("sec", (x,))),
    "arcsin": lambda x: _over(Apply("sqrt", (Apply("+", (Number(1), negative(_square(x)))),))),
    "arccos": lambda x: negative(_over(Apply("sqrt", (Apply("+", (Number(1), negative(_square(x)))),)))),
    "arctan": lambda x: _over(Apply("+", (Number(1), _square(x)))),
    "sinh": lambda x: Apply("cosh", (x,)),
    "cosh": lambda x: Apply("sinh", (x,)),
}
