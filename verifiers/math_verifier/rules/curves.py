"""Compares equations and inequalities that contain symbols.

Three tests are used: both are proportional, both have the same solutions, or both are true at the same points.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from bestofn.verifiers.math_verifier.arithmetic import SPECIAL, evaluate, exact
from bestofn.verifiers.math_verifier.fields import CONSTANTS, EXACT, Value
from bestofn.verifiers.math_verifier.nodes import Apply, Node, Number, Symbol, symbols
from bestofn.verifiers.math_verifier.rules.points import REGIONS, close, sample, tiny, value_at

Point = dict[str, Value]
ENOUGH = 4  # number of agreeing points that decide
STEPS = 40  # steps of the secant method
RESIDUAL = 1e-9  # a point with a smaller residual, relative to the slope there, solves an equation


def difference(left: Node, right: Node) -> Node:
    """Return the tree of ``left - right``."""
    return left if right == Number(0) else Apply("+", (left, Apply("neg", (right,))))


def proportional(left: Node, right: Node, signed: bool) -> bool | None:
    """Return whether left = c·right for a constant c ≠ 0 (c > 0 if ``signed``), or None if undecided.

    Expressions of degree 1 are compared by their coefficients, others by their values at fixed points.
    """
    ours, theirs = coefficients(left), coefficients(right)
    if ours and theirs:
        ratio = _ratio(ours, theirs)
        return ratio != 0 and (not signed or ratio > 0)
    names = symbols(left) | symbols(right)
    ratios: list[Value] = []
    for trial in range(1, ENOUGH + 1):
        for region in REGIONS[:3]:
            point = sample(names, region, trial)
            above, below = value_at(left, point, region), value_at(right, point, region)
            if above is None or below is None:
                continue
            if tiny(below) or tiny(above):
                if tiny(below) != tiny(above):
                    return False
                continue
            ratios.append(above / below if isinstance(below, float | complex) else Fraction(1) / below * above)
            if not close(ratios[-1], ratios[0]):
                return False
        if len(ratios) >= ENOUGH:
            break
    if len(ratios) < 2:
        return None
    return not signed or (not isinstance(ratios[0], complex) and ratios[0] > 0)


def same_solutions(left: Node, right: Node) -> bool | None:
    """Return whether left = 0 and right = 0 have the same solutions, or None if undecided.

    Two equations of degree 1 are compared by their coefficients. For other equations, solutions of each are computed at
    fixed points with the secant method and put into the other equation.
    """
    ours, theirs = coefficients(left), coefficients(right)
    if ours and theirs:
        return _ratio(ours, theirs) != 0
    names = sorted((symbols(left) | symbols(right)) - CONSTANTS.keys())
    forward = _contained(left, right, names)
    return forward if forward is not None and _contained(right, left, names) == forward else None


def coefficients(node: Node) -> dict[str, Fraction]:
    """Return {symbol: coefficient} of an expression of degree 1; the constant term has the key "".

    The result is empty for other expressions, and for expressions with decimals or named constants, which may be
    rounded.
    """
    terms = _terms(node)
    return {} if terms is None or not any(terms[name] for name in terms if name) else terms


def _terms(node: Node) -> dict[str, Fraction] | None:
    if isinstance(node, Number):
        return {"": Fraction(node.value)} if node.place is None else None
    if isinstance(node, Symbol):
        return None if node.name in CONSTANTS else {node.name: Fraction(1)}
    if not isinstance(node, Apply) or node.head not in ("+", "neg", "*", "/"):
        return None
    first, *others = [_terms(part) for part in node.args]
    if node.head == "neg":
        return _scaled(first, Fraction(-1))
    for part in others:
        first = _added(first, part) if node.head == "+" else _multiplied(first, part, divide=node.head == "/")
    return first


def _scaled(terms: dict[str, Fraction] | None, factor: Fraction) -> dict[str, Fraction] | None:
    return None if terms is None else {name: value * factor for name, value in terms.items()}


def _added(left: dict[str, Fraction] | None, right: dict[str, Fraction] | None) -> dict[str, Fraction] | None:
    if left is None or right is None:
        return None
    return {name: left.get(name, Fraction(0)) + right.get(name, Fraction(0)) for name in left.keys() | right.keys()}


def _multiplied(
    left: dict[str, Fraction] | None, right: dict[str, Fraction] | None, divide: bool
) -> dict[str, Fraction] | None:
    """Return the coefficients of the product or the quotient; None if its degree is not 0 or 1."""
    if left is None or right is None:
        return None
    if right.keys() == {""} and (right[""] or not divide):
        return _scaled(left, 1 / right[""] if divide else right[""])
    return _scaled(right, left[""]) if left.keys() == {""} and not divide else None


def _ratio(ours: dict[str, Fraction], theirs: dict[str, Fraction]) -> Fraction:
    """Return the ratio of the coefficients of two expressions of degree 1, or 0 if they are not proportional."""
    name = next(name for name, value in ours.items() if name and value)
    ratio = theirs.get(name, Fraction(0)) / ours[name]
    names = ours.keys() | theirs.keys()
    proportionate = all(theirs.get(each, Fraction(0)) == ratio * ours.get(each, Fraction(0)) for each in names)
    return ratio if proportionate else Fraction(0)


def _contained(left: Node, right: Node, names: list[str]) -> bool | None:
    """Return whether the computed solutions of left = 0 solve right = 0.

    Return None if there are too few solutions, or if only some of them solve right = 0. Every symbol of ``left`` is the
    unknown in turn; the others have the values of a fixed point.
    """
    verdicts: list[bool] = []
    for trial in range(1, ENOUGH + 1):
        for name in names:
            if name in symbols(left):
                point: Point = dict(sample(frozenset(names), trial % 2, trial))
                verdicts += _solved_by_roots(left, right, name, point)
                if len(set(verdicts)) > 1:
                    return None
    return verdicts[0] if len(verdicts) >= ENOUGH else None


def _solved_by_roots(left: Node, right: Node, name: str, point: Point) -> list[bool]:
    """Return, for each computed root of left = 0, whether it solves right = 0. ``name`` is the unknown."""
    verdicts: list[bool] = []
    fixed = {other: value for other, value in point.items() if other != name}
    ours, theirs = _substituted(left, fixed), _substituted(right, fixed)
    for start in (point[name], -point[name]):
        root = _root(lambda value: evaluate(ours, point | {name: value}), start)
        if root is not None:
            solved = _solves(lambda value: evaluate(theirs, point | {name: value}), root)
            verdicts += [] if solved is None else [solved]
    return verdicts


def _substituted(node: Node, point: Point) -> Node:
    """Return ``node`` with the variables of ``point`` replaced by their rational values.

    Parts that depend only on these variables are evaluated, so the result takes less time to evaluate than ``node``.
    """
    if isinstance(node, Symbol) and type(point.get(node.name)) in EXACT:
        return Number(point[node.name])
    if not isinstance(node, Apply) or node.head in SPECIAL:
        return node
    node = Apply(node.head, tuple(_substituted(part, point) for part in node.args))
    value = exact(node) if all(isinstance(part, Number) for part in node.args) else None
    return node if value is None else Number(value)


def _root(function: Callable[[Value], Value], start: Value) -> complex | None:
    """Return a root of ``function`` by the secant method, which also finds complex roots; None if there is none."""
    try:
        first, second = complex(start), complex(start) + (0.3 + 0.2j)
        low, high = complex(function(first)), complex(function(second))
        for _ in range(STEPS):
            if high == low:
                return None
            first, second, low = second, second - high * (second - first) / (high - low), high
            high = complex(function(second))
            if abs(second - first) <= 1e-13 * max(1.0, abs(second)):
                return second if abs(second) < 1e6 else None
    except (ArithmeticError, TypeError, ValueError):
        return None
    return None


def _solves(function: Callable[[Value], Value], root: complex) -> bool | None:
    """Return whether ``function`` is zero at ``root``, compared with its values near the root."""
    try:
        step = 1e-3 * max(1.0, abs(root))
        at, near = abs(complex(function(root))), abs(complex(function(root + step)))
    except (ArithmeticError, TypeError, ValueError):
        return None
    return None if near == at == 0 else at <= RESIDUAL * 1e3 * max(at, near)


def same_truth(left: tuple[str, Node], right: tuple[str, Node], names: frozenset[str]) -> bool:
    """Return whether two inequalities are both true or both false at every fixed point.

    An inequality is a sign and an expression, which the sign compares with zero.
    """
    for trial in range(1, 2 * ENOUGH + 1):
        for region in REGIONS:
            point = sample(names, region, trial)
            ours, theirs = _holds(left, point, region), _holds(right, point, region)
            if ours is not None and theirs is not None and ours != theirs:
                return False
    return True


def _holds(inequality: tuple[str, Node], point: dict[str, Fraction | int], region: int) -> bool | None:
    sign, expression = inequality
    value = value_at(expression, point, region)
    if value is None or isinstance(value, complex):
        return None
    if tiny(value):
        return sign == "<="
    return value < 0 or sign == "!="
