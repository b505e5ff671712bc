"""Compares numbers by exact or rounded value, and expressions with symbols by their values at fixed points."""

from __future__ import annotations

import math
import zlib
from fractions import Fraction

from bestofn.verifiers.math_verifier import units
from bestofn.verifiers.math_verifier.arithmetic import Undefined, evaluate, is_constant
from bestofn.verifiers.math_verifier.fields import CONSTANTS, DOUBLES, Value, digits
from bestofn.verifiers.math_verifier.nodes import Apply, Node, Number, Symbol, symbols, walk
from bestofn.verifiers.math_verifier.rounding import agree
from bestofn.verifiers.math_verifier.rules.terms import Match, Terms


def scalar(reference: Node, candidate: Node, terms: Terms) -> Match:
    """Compare two numbers or expressions. This rule is applied last, if no other rule applies."""
    if is_constant(reference) and is_constant(candidate):
        return _constants(reference, candidate, terms)
    if isinstance(candidate, Symbol) and reference != candidate:
        return Match(False, "a symbol")
    if is_constant(reference):
        measured = units.from_symbols(candidate)
        if measured is not None:  # "48g": compare the number, ignore the unit
            return _constants(reference, measured.value, terms)
    return _functions(reference, candidate)


def _constants(reference: Node, candidate: Node, terms: Terms) -> Match:
    try:
        ours = evaluate(reference)
        theirs = evaluate(candidate)
    except Undefined:
        return Match(None, "no value", 0.0)
    if ours != ours or theirs != theirs:  # NaN, for example zero times infinity
        return Match(None, "no value", 0.0)
    exact = isinstance(ours, int | Fraction) and isinstance(theirs, int | Fraction)
    if exact and ours == theirs:
        return Match(True, "exact value")
    if exact:
        equal = agree(ours, _place(reference), theirs, _place(candidate), terms.rounding)
        return Match(equal, "rounded value" if equal else "exact value", 1.0 if equal is False else 0.95)
    if not near(ours, theirs):
        if isinstance(ours, complex) or isinstance(theirs, complex):
            return Match(False, "numeric value")
        if infinite(ours) or infinite(theirs):
            return Match(ours == theirs, "infinite value")
        equal = agree(ours, _place(reference), theirs, _place(candidate), terms.rounding)
        return Match(equal, "rounded value" if equal else "numeric value", 0.95)
    if _place(reference) is not None or _place(candidate) is not None:
        return Match(True, "numeric value")
    return _to_many_digits(reference, candidate)


def _to_many_digits(reference: Node, candidate: Node) -> Match:
    """Compare two values with 50 digits. Their double-precision values already agree to nine digits."""
    field = digits()
    try:
        ours, theirs = (field.enter(evaluate(node, None, field)) for node in (reference, candidate))
    except ArithmeticError:
        return Match(None, "no value", 0.0)
    scale = max(abs(ours), abs(theirs), 1)
    equal = bool(abs(ours - theirs) <= scale * field.enter(Fraction(1, 10**38)))
    if not equal and _float_artefact(candidate):
        equal = True
    return Match(equal, "numeric value", 0.99)


def _float_artefact(node: Node) -> bool:
    """Return whether a number in the tree was probably a double, such as 183803159792058355/562949953421312."""
    return any(isinstance(part, Number) and abs(part.value) >= 10**11 for part in walk(node))


def _place(node: Node) -> int | None:
    """Return the place (see ``Number``) of a number, or None. The number may be negative, money or a percentage."""
    while isinstance(node, Apply) and node.head in ("neg", "money", "percent"):
        node = node.args[0]
    return node.place if isinstance(node, Number) else None


def value_of(node: Node) -> Value:
    """Return the value of ``node``, or None if it has no value."""
    try:
        return evaluate(node)
    except ArithmeticError:
        return None


def near(ours: Value, theirs: Value) -> bool:
    """Return whether two values differ by at most 1e-9 (relative) or less than 1e-12 (absolute)."""
    try:
        gap, scale = abs(ours - theirs), max(abs(ours), abs(theirs))
        if not math.isfinite(scale):
            return ours == theirs
    except (OverflowError, TypeError, ValueError):
        return False
    return gap <= 1e-9 * scale or gap < 1e-12


def close(ours: Value, theirs: Value) -> bool:
    """Return whether two values agree: rational values must be equal, other values must be ``near``."""
    if isinstance(ours, int | Fraction) and isinstance(theirs, int | Fraction):
        return ours == theirs
    try:
        return near(DOUBLES.enter(ours), DOUBLES.enter(theirs))
    except OverflowError:  # an exact number is too large for a double
        return near(ours, theirs)


def infinite(value: Value) -> bool:
    """Return whether ``value`` is an infinite float. Exact numbers are always finite."""
    return isinstance(value, float) and math.isinf(value)


def tiny(value: Value) -> bool:
    """Return whether ``value`` is zero. An inexact value counts as zero if its absolute value is below 1e-12."""
    return value == 0 if isinstance(value, int | Fraction) else abs(value) < 1e-12


def _functions(reference: Node, candidate: Node) -> Match:
    """Compare expressions with symbols by their values at fixed points.

    Rational functions are evaluated exactly, so equal values at several points are practically a proof (Schwartz 1980,
    Zippel 1979). Different complex values at a point with negative coordinates are ignored, because roots and
    logarithms may use different branches there.
    """
    candidate = _with_same_constant(reference, candidate)
    names = symbols(reference) | symbols(candidate)
    agreed = undefined = complex_points = 0
    for trial in range(1, 13):
        point = sample(names, trial)
        try:
            ours, theirs = evaluate(reference, point), evaluate(candidate, point)
        except Undefined:
            undefined += 1
            continue
        if isinstance(ours, complex) or isinstance(theirs, complex):
            if not close(ours, theirs):
                if (abs(ours.imag) < 1e-9 and abs(theirs.imag) < 1e-9) or not _negative(trial):
                    return Match(False, "values at points")
                complex_points += 1
                continue
        elif not close(ours, theirs):
            return Match(False, "values at points")
        agreed += 1
        if agreed == 5:
            break
    if agreed >= 3:
        return Match(True, "values at points", 0.99)
    return Match(None, "no points to compare at", 0.0)


_CONSTANTS_OF_INTEGRATION = frozenset({"C", "c", "K", "k", "C_1", "c_1"})


def _with_same_constant(reference: Node, candidate: Node) -> Node:
    """Return ``candidate`` with its constant of integration renamed to the name in the reference.

    ``candidate`` does not change if one of the sides has no such constant or several of them.
    """
    ours, theirs = _added(reference), _added(candidate)
    if len(ours) != 1 or len(theirs) != 1 or ours == theirs or not ours <= {"C", "C_1"}:
        return candidate
    if ours & symbols(candidate) or theirs & symbols(reference) or not isinstance(candidate, Apply):
        return candidate
    renamed = Symbol(next(iter(ours)))
    return Apply("+", tuple(renamed if _is_constant_of_integration(part) else part for part in candidate.args))


def _added(node: Node) -> frozenset[str]:
    if not isinstance(node, Apply) or node.head != "+":
        return frozenset()
    return frozenset(part.name for part in node.args if isinstance(part, Symbol) and _is_constant_of_integration(part))


def _is_constant_of_integration(node: Node) -> bool:
    return isinstance(node, Symbol) and node.name in _CONSTANTS_OF_INTEGRATION


def _negative(trial: int) -> bool:
    return trial % 3 == 0


def sample(names: frozenset[str], trial: int) -> dict[str, Fraction]:
    """Return one rational value per variable. Equal arguments give equal values. Every third trial gives negatives."""
    point = {}
    for name in names:
        if name in CONSTANTS and name != "e":
            continue
        if name == "e":
            continue
        hashed = zlib.crc32(f"{name}/{trial}".encode())
        value = Fraction(1009 + hashed % 2000, 997)
        point[name] = -value if _negative(trial) else value
    return point
