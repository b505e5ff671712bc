"""Whether two trees mean the same: one small rule for each kind of answer.

Three results: True, False, and None for what cannot be decided. The reference stands first, because it decides the
precision, the order of a list and whether a unit is asked for.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from verifiers.math_verifier import units
from verifiers.math_verifier.arithmetic import (
    CONSTANTS,
    DOUBLES,
    Intractable,
    Undefined,
    digits,
    evaluate,
    is_constant,
    small,
)
from verifiers.math_verifier.intervals import as_ranges, same_ranges
from verifiers.math_verifier.matrices import rows
from verifiers.math_verifier.nodes import COLLECTIONS, RELATIONS, Apply, Node, Number, Symbol, Text, head, symbols, walk
from verifiers.math_verifier.rounding import Rounding, agree

MissingUnit = Literal["pass", "abstain", "fail"]
MAX_ITEMS = 64
REALS = Symbol("mathbb_R")


@dataclass(frozen=True, slots=True)
class Terms:
    """What the comparison goes by. ``percent``: the problem speaks of a percentage; ``degrees``: it asks for
    degrees, so a bare pi/6 is no radian; ``ordered``: order matters in lists."""

    rounding: Rounding = "reference_precision"
    missing_unit: MissingUnit = "pass"
    percent: bool = False
    degrees: bool = False
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Match:
    """``equal`` None: undecided. ``method`` names the rule that decided."""

    equal: bool | None
    method: str
    confidence: float = 1.0


def compare(reference: Node, candidate: Node, terms: Terms) -> Match:
    """Whether ``candidate`` says the same as ``reference``. Bounded in time, raises nothing."""
    if reference == candidate:
        return Match(True, "identical")
    if not (small(reference) and small(candidate)):
        return Match(None, "too large")
    try:
        return _compare(reference, candidate, terms)
    except Intractable as error:
        return Match(None, f"out of bounds: {error}", 0.0)
    except RecursionError:
        return Match(None, "nested too deeply", 0.0)


def _compare(reference: Node, candidate: Node, terms: Terms) -> Match:
    if reference == candidate:
        return Match(True, "identical")
    for rule in (_approximation, _plus_minus, _relation, _text, _matrix, _collection, _based, _quantity):
        match = rule(reference, candidate, terms)
        if match is not None:
            return match
    return _scalar(reference, candidate, terms)


# approximations and plus-minus --------------------------------------------------------------------------------------


def _approximation(reference: Node, candidate: Node, terms: Terms) -> Match | None:
    """``sqrt(2) ≈ 1.414``: the exact side counts; the rounded one only against a reference that is rounded too."""
    if head(reference) == "~":
        return _first_true([_compare(side, candidate, terms) for side in reference.args])  # type: ignore[union-attr]
    if head(candidate) == "~":
        sides = candidate.args  # type: ignore[union-attr]
        return _first_true([_compare(reference, side, terms) for side in sides])
    return None


def _first_true(matches: list[Match]) -> Match:
    for match in matches:
        if match.equal:
            return match
    undecided = [match for match in matches if match.equal is None]
    return undecided[0] if undecided else matches[0]


def _plus_minus(reference: Node, candidate: Node, terms: Terms) -> Match | None:
    if not any(head(part) in ("pm", "mp") for node in (reference, candidate) for part in walk(node)):
        return None
    left, right = both_signs(reference), both_signs(candidate)
    if len(left) == len(right) == 1:
        return None
    return _unordered(left, right, terms)


def both_signs(node: Node) -> list[Node]:
    """The two values of an expression with ±, in the order +, −; a list's values one after another."""
    if head(node) in (",", "{}"):
        return [value for item in node.args for value in both_signs(item)]  # type: ignore[union-attr]
    if head(node) in RELATIONS and head(node.args[-1]) != "":  # type: ignore[union-attr]
        return both_signs(node.args[-1])  # type: ignore[union-attr]
    if not any(head(part) in ("pm", "mp") for part in walk(node)):
        return [node]
    return [_with_sign(node, 1), _with_sign(node, -1)]


def _with_sign(node: Node, sign: int) -> Node:
    if not isinstance(node, Apply):
        return node
    args = tuple(_with_sign(part, sign) for part in node.args)
    if node.head in ("pm", "mp"):
        positive = (sign > 0) == (node.head == "pm")
        return Apply("+", (args[0], args[1] if positive else Apply("neg", (args[1],))))
    return Apply(node.head, args)


# relations ----------------------------------------------------------------------------------------------------------


def _relation(reference: Node, candidate: Node, terms: Terms) -> Match | None:
    left, right = head(reference), head(candidate)
    if left not in RELATIONS and right not in RELATIONS and "chain" not in (left, right):
        return None
    if left == "in":
        return _compare(reference.args[-1], candidate, terms)  # type: ignore[union-attr]
    if right == "in":
        return _compare(reference, candidate.args[-1], terms)  # type: ignore[union-attr]
    if left in ("=",) and right in ("=",):
        return _equations(reference, candidate, terms)
    if left == "=" and right not in RELATIONS | {"chain"}:
        return _named_value(reference, candidate, terms)
    if right == "=" and left not in RELATIONS | {"chain"}:
        return _answered_equation(reference, candidate, terms)
    return _inequalities(reference, candidate, terms)


def _named_value(reference: Node, candidate: Node, terms: Terms) -> Match:
    """The reference ``x = 5`` asks for 5; the reference ``2x + z = 1`` asks for an equation."""
    sides = reference.args  # type: ignore[union-attr]
    if _is_name(sides[0]):
        return _compare(sides[-1], candidate, terms)
    if _is_name(sides[-1]):
        return _compare(sides[0], candidate, terms)
    return Match(False, "an equation is asked for")


def _answered_equation(reference: Node, candidate: Node, terms: Terms) -> Match:
    """``6!/2 = 360``, ``x = 5``, ``a + b = 7``: the last side is the answer; ``x - 3z = 0`` is no answer 0."""
    sides = candidate.args  # type: ignore[union-attr]
    last = sides[-1]
    if last == Number(0) and symbols(sides[0]) and not _is_name(sides[0]):
        return Match(False, "an equation is no value")
    match = _compare(reference, last, terms)
    if not match.equal and _is_name(last) and not _is_name(sides[0]):
        return _compare(reference, sides[0], terms)
    return match


def _is_name(node: Node) -> bool:
    """A symbol, ``f(x)``, ``\\angle ABC``, or a tuple of names: what stands before the value in ``x = 5``."""
    if isinstance(node, Symbol):
        return node.name not in CONSTANTS or node.name in ("e", "i")
    if isinstance(node, Apply):
        if node.head == "call":
            return True
        if node.head in COLLECTIONS:
            return all(_is_name(part) for part in node.args)
        if node.head == "*":
            return all(isinstance(part, Symbol) for part in node.args) and len(node.args) <= 4
        if node.head in ("/", "ratio"):
            return all(_is_name(part) for part in node.args)
        return node.head in ("abs", "conjugate") and _is_name(node.args[0])
    return isinstance(node, Text)


def _equations(reference: Node, candidate: Node, terms: Terms) -> Match:
    ours, theirs = reference.args, candidate.args  # type: ignore[union-attr]
    if _is_name(ours[0]) and _is_name(theirs[0]) and not (symbols(ours[-1]) & symbols(ours[0])):
        same = _compare(ours[-1], theirs[-1], terms)
        if same.equal or not symbols(ours[-1]):
            return Match(same.equal and _same_name(ours[0], theirs[0]), same.method, same.confidence)
    if len(theirs) > 2 and symbols(ours[0]) == symbols(theirs[0]) and not symbols(theirs[-1]):
        return _compare(ours[-1], theirs[-1], terms)
    left = _difference(ours[0], ours[-1])
    right = _difference(theirs[0], theirs[-1])
    if _is_zero(left) and _is_zero(right):
        return _compare(ours[-1], theirs[-1], terms)
    return Match(_proportional(left, right, signed=False), "equation up to scale", 0.98)


def _same_name(ours: Node, theirs: Node) -> bool:
    """``y = …`` and ``f(x) = …`` name the same value; ``x = 5`` and ``y = 5`` are different lines."""
    return ours == theirs or not (isinstance(ours, Symbol) and isinstance(theirs, Symbol))


def _is_zero(node: Node) -> bool:
    return not symbols(node)


def _difference(left: Node, right: Node) -> Node:
    return left if right == Number(0) else Apply("+", (left, Apply("neg", (right,))))


def _proportional(left: Node, right: Node, signed: bool) -> bool | None:
    """Whether left = c·right for a constant c ≠ 0 (c > 0 with ``signed``), by values at fixed points."""
    names = symbols(left) | symbols(right)
    ratios = []
    for trial in range(1, 9):
        point = _point(names, trial)
        try:
            above, below = evaluate(left, point), evaluate(right, point)
        except Undefined:
            continue
        if _tiny(below) or _tiny(above):
            if _tiny(below) != _tiny(above):
                return False
            continue
        ratios.append(above / below if isinstance(below, float | complex) else Fraction(1) / below * above)
        if len(ratios) == 4:
            break
    if len(ratios) < 2:
        return None
    if any(not _close(ratio, ratios[0]) for ratio in ratios[1:]):
        return False
    return not signed or (not isinstance(ratios[0], complex) and ratios[0] > 0)


def _inequalities(reference: Node, candidate: Node, terms: Terms) -> Match:
    ours, theirs = as_ranges(reference), as_ranges(candidate)
    if ours is not None and theirs is not None:
        return Match(same_ranges(ours, theirs, lambda a, b: _scalar(a, b, terms).equal), "ranges")
    if ours is not None or theirs is not None:
        unread = candidate if theirs is None else reference
        unsolved = head(unread) in RELATIONS or head(unread) == "chain"
        return Match(None if unsolved else False, "a range against something else", 0.0 if unsolved else 1.0)
    left, right = _normalised_inequality(reference), _normalised_inequality(candidate)
    if left is None or right is None or left[0] != right[0]:
        return Match(False, "different relations")
    return Match(_proportional(left[1], right[1], signed=left[0] != "!="), "inequality up to scale", 0.98)


def _normalised_inequality(node: Node) -> tuple[str, Node] | None:
    """The relation as ``expression < 0`` or ``<= 0`` (or ``!= 0``)."""
    if not isinstance(node, Apply) or node.head not in ("<", "<=", ">", ">=", "!="):
        return None
    left, right = node.args[0], node.args[-1]
    if node.head in (">", ">="):
        left, right = right, left
    return node.head.replace(">", "<"), _difference(left, right)


# text ---------------------------------------------------------------------------------------------------------------


def _text(reference: Node, candidate: Node, terms: Terms) -> Match | None:
    if isinstance(reference, Text) and isinstance(candidate, Text):
        return Match(_folded(reference.text) == _folded(candidate.text), "text")
    if isinstance(reference, Text) or isinstance(candidate, Text):
        return Match(False, "text against a value", 0.9)
    return None


def _folded(text: str) -> str:
    return " ".join("".join(c if c.isalnum() else " " for c in text.casefold()).split())


# collections --------------------------------------------------------------------------------------------------------


def _collection(reference: Node, candidate: Node, terms: Terms) -> Match | None:
    left, right = head(reference), head(candidate)
    if "union" in (left, right) or "setminus" in (left, right) or REALS in (reference, candidate):
        return _unions(reference, candidate, terms)
    if left not in COLLECTIONS and right not in COLLECTIONS:
        return None
    ours = reference.args if left in COLLECTIONS else (reference,)  # type: ignore[union-attr]
    theirs = candidate.args if right in COLLECTIONS else (candidate,)  # type: ignore[union-attr]
    if left not in COLLECTIONS or right not in COLLECTIONS:
        return _one_against_many(ours, theirs, left, right, terms)
    if not _brackets_agree(left, right, len(ours)):
        return Match(False, "different brackets")
    if len(ours) != len(theirs):
        return Match(False, "different numbers of values")
    if "{}" in (left, right) or (left == "," and right == "," and not terms.ordered):
        return _unordered(list(ours), list(theirs), terms)
    match = _ordered(ours, theirs, terms)
    if not match.equal and left == "," and not terms.ordered and right != "()":
        return _unordered(list(ours), list(theirs), terms)
    return match


def _one_against_many(ours: tuple, theirs: tuple, left: str, right: str, terms: Terms) -> Match:
    """A single value against a set of one, a list that repeats it, or several values (wrong)."""
    if not ours or not theirs:
        return Match(False, "an empty set against a value")
    if right in (",", "{}", "[]") and len(theirs) > 1 and len(ours) == 1:
        matches = [_compare(ours[0], item, terms) for item in theirs]
        if all(match.equal for match in matches):
            return Match(True, "the same value, repeated", 0.9)
        return Match(False, "several values for one")
    if len(ours) == len(theirs) == 1:
        return _compare(ours[0], theirs[0], terms)
    return Match(False, "different numbers of values")


def _brackets_agree(left: str, right: str, count: int) -> bool:
    if left == right or "," in (left, right):
        return True
    if "{}" in (left, right):
        return {left, right} == {"{}", "[]"} and count != 2
    return count != 2 and {left, right} == {"()", "[]"}


def _ordered(ours: tuple, theirs: tuple, terms: Terms) -> Match:
    undecided = False
    for mine, other in zip(ours, theirs, strict=True):
        match = _compare(mine, other, terms)
        if match.equal is False:
            return Match(False, f"a member differs ({match.method})")
        undecided = undecided or match.equal is None
    return Match(None if undecided else True, "member by member")


def _unordered(ours: list[Node], theirs: list[Node], terms: Terms) -> Match:
    if len(ours) != len(theirs):
        ours, theirs = _distinct(ours, terms), _distinct(theirs, terms)
        if len(ours) != len(theirs):
            return Match(False, "different numbers of values")
    if len(ours) > MAX_ITEMS:
        return Match(None, "too many members")
    left, undecided = list(theirs), False
    for mine in ours:
        found = None
        for at, other in enumerate(left):
            equal = _compare(mine, other, terms).equal
            if equal:
                found = at
                break
            undecided = undecided or equal is None
        if found is None:
            return Match(None if undecided else False, "a member is missing")
        left.pop(found)
    return Match(True, "the same members")


def _distinct(items: list[Node], terms: Terms) -> list[Node]:
    if len(items) > MAX_ITEMS:
        return items
    kept: list[Node] = []
    for item in items:
        if not any(_compare(item, other, terms).equal for other in kept):
            kept.append(item)
    return kept


def _unions(reference: Node, candidate: Node, terms: Terms) -> Match:
    ours, theirs = as_ranges(reference), as_ranges(candidate)
    if ours is not None and theirs is not None:
        return Match(same_ranges(ours, theirs, lambda a, b: _scalar(a, b, terms).equal), "ranges")
    if head(reference) == head(candidate) == "union":
        return _unordered(list(reference.args), list(candidate.args), terms)  # type: ignore[union-attr]
    return Match(False, "a union against something else")


def _matrix(reference: Node, candidate: Node, terms: Terms) -> Match | None:
    if "matrix" not in (head(reference), head(candidate)):
        return None
    ours, theirs = rows(reference), rows(candidate)
    if ours is None or theirs is None or [len(row) for row in ours] != [len(row) for row in theirs]:
        return Match(False, "different shapes")
    flat = [(a, b) for mine, other in zip(ours, theirs, strict=True) for a, b in zip(mine, other, strict=True)]
    return _ordered(tuple(a for a, _ in flat), tuple(b for _, b in flat), terms)


def _based(reference: Node, candidate: Node, terms: Terms) -> Match | None:
    """``204_5``: the same digits in the same base; digits alone pass with less confidence."""
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
    if left != "base":  # the reference is a plain number: the numeral's value counts
        value = _numeral_value(candidate)
        return Match(value is not None and _scalar(reference, Number(value), terms).equal, "value of a numeral", 0.9)
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


# quantities ---------------------------------------------------------------------------------------------------------

_MARKS = frozenset({"unit", "percent", "money", "deg", "scale"})


def _quantity(reference: Node, candidate: Node, terms: Terms) -> Match | None:
    left, right = head(reference), head(candidate)
    if left not in _MARKS and right not in _MARKS:
        return None
    if left == "money" or right == "money":
        return _compare(_without(reference, "money"), _without(candidate, "money"), terms)
    if left == "scale" or right == "scale":
        return _scales(reference, candidate, terms)
    if left == "unit" or right == "unit":
        return _units(reference, candidate, terms)
    if left == "percent" or right == "percent":
        return _percentages(reference, candidate, terms)
    return _degrees(reference, candidate, terms)


def _without(node: Node, mark: str) -> Node:
    return node.args[0] if head(node) == mark else node  # type: ignore[union-attr]


def _scales(reference: Node, candidate: Node, terms: Terms) -> Match:
    """``2.3 million``: in full; or 2.3, when the other side leaves the scale to the problem ("in millions")."""
    full = _compare(_full_scale(reference), _full_scale(candidate), terms)
    if full.equal or (head(reference) == head(candidate) and reference.args[1] == candidate.args[1]):  # type: ignore[union-attr]
        return full
    if head(candidate) == "scale" and head(reference) != "scale":
        return _compare(reference, candidate.args[0], terms)  # type: ignore[union-attr]
    if head(reference) == "scale" and head(candidate) != "scale":
        return _compare(reference.args[0], candidate, terms)  # type: ignore[union-attr]
    return full


def _full_scale(node: Node) -> Node:
    """The number written out: the scale is a power of ten."""
    if head(node) != "scale":
        return node
    value, power = node.args  # type: ignore[union-attr]
    exponent = int(power.value)  # type: ignore[union-attr]
    if isinstance(value, Number):
        grown = Fraction(value.value) * 10**exponent
        place = None if value.place is None else value.place + exponent
        return Number(grown.numerator if grown.denominator == 1 else grown, place)
    return Apply("*", (value, Number(10**exponent)))


def _percentages(reference: Node, candidate: Node, terms: Terms) -> Match:
    ours, theirs = _without(reference, "percent"), _without(candidate, "percent")
    if head(reference) == head(candidate):
        return _compare(ours, theirs, terms)
    plain = _compare(ours, theirs, terms)
    if head(reference) == "percent":
        return plain if plain.equal else _first_true([_compare(_hundredth(ours), theirs, terms), plain])
    as_number = _compare(ours, _hundredth(theirs), terms)
    if as_number.equal:
        return as_number
    value = _value(ours)
    if plain.equal and (terms.percent or value is None or abs(value) >= 1 or value == 0):
        return plain
    return Match(False, "percent")


def _hundredth(node: Node) -> Node:
    if isinstance(node, Number):
        place = None if node.place is None else node.place - 2
        return Number(Fraction(node.value) / 100, place if place is not None else None)
    return Apply("/", (node, Number(100)))


def _degrees(reference: Node, candidate: Node, terms: Terms) -> Match:
    ours, theirs = _without(reference, "deg"), _without(candidate, "deg")
    plain = _compare(ours, theirs, terms)
    if plain.equal or head(reference) == head(candidate):
        return plain
    bare = theirs if head(candidate) != "deg" else ours
    if "pi" in symbols(bare) and not (terms.degrees and head(candidate) != "deg"):
        return _scalar(reference, candidate, terms)
    return plain


def _units(reference: Node, candidate: Node, terms: Terms) -> Match:
    asked, given = units.split(reference), units.split(candidate)
    if not asked.unit and given.unit:
        asked = units.from_symbols(reference) or asked
    plain = _compare(asked.value, given.value, terms)
    if not asked.unit:
        if plain.equal and len(candidate.args) > 2:  # type: ignore[union-attr]
            return Match(None, "hours and minutes against a number without a unit", 0.0)
        if plain.equal and head(reference) not in ("percent", "deg"):
            return Match(True, f"{plain.method}; the unit is not asked for", min(plain.confidence, 0.95))
        return plain
    if not given.unit:
        given = units.from_symbols(candidate) or given
    verdict = units.relate(asked.unit, given.unit)
    if verdict == "missing":
        if not plain.equal or terms.missing_unit == "pass":
            return Match(plain.equal, f"{plain.method}; the unit is missing", min(plain.confidence, 0.6))
        return Match(None if terms.missing_unit == "abstain" else False, "the unit is missing", 0.5)
    if verdict == "same":
        return plain
    if verdict == "unknown":
        return Match(plain.equal, f"{plain.method}; unit not known", min(plain.confidence, 0.8))
    if verdict == "incompatible":
        return Match(False, "another dimension")
    return _converted(asked, given, terms)


def _converted(asked: units.Quantity, given: units.Quantity, terms: Terms) -> Match:
    ours, theirs = _value(asked.value), _value(given.value)
    if ours is None or theirs is None or isinstance(ours, complex) or isinstance(theirs, complex):
        return Match(None, "units of what has no value")
    there = units.convert(theirs, given.unit, asked.unit)
    if there is None:
        return Match(None, "a conversion that cannot be done")
    tolerance = 1e-4 if terms.rounding != "strict" else 1e-6
    close = abs(there - ours) <= tolerance * max(abs(there), abs(ours)) or (there == ours)
    return Match(bool(close), "units converted", 0.98)


# scalars ------------------------------------------------------------------------------------------------------------


def _scalar(reference: Node, candidate: Node, terms: Terms) -> Match:
    if is_constant(reference) and is_constant(candidate):
        return _constants(reference, candidate, terms)
    if any(head(part) in ("call",) for node in (reference, candidate) for part in walk(node)):
        return _functions(reference, candidate)
    if isinstance(candidate, Symbol) and reference != candidate:
        return Match(False, "a symbol")
    if is_constant(reference):
        measured = units.from_symbols(candidate)
        if measured is not None:  # "48g": the number with a unit that was not asked for
            return _constants(reference, measured.value, terms)
    return _functions(reference, candidate)


def _constants(reference: Node, candidate: Node, terms: Terms) -> Match:
    try:
        ours = evaluate(reference)
        theirs = evaluate(candidate)
    except Undefined:
        return Match(None, "no value", 0.0)
    exact = isinstance(ours, int | Fraction) and isinstance(theirs, int | Fraction)
    if exact and ours == theirs:
        return Match(True, "exact value")
    if exact:
        equal = agree(ours, _place(reference), theirs, _place(candidate), terms.rounding)
        return Match(equal, "rounded value" if equal else "exact value", 1.0 if equal is False else 0.95)
    if not _near(ours, theirs):
        if isinstance(ours, complex) or isinstance(theirs, complex):
            return Match(False, "numeric value")
        if math.isinf(ours) or math.isinf(theirs):
            return Match(ours == theirs, "infinite value")
        equal = agree(ours, _place(reference), theirs, _place(candidate), terms.rounding)
        return Match(equal, "rounded value" if equal else "numeric value", 0.95)
    if _place(reference) is not None or _place(candidate) is not None:
        return Match(True, "numeric value")
    return _to_many_digits(reference, candidate)


def _to_many_digits(reference: Node, candidate: Node) -> Match:
    """Doubles that agree to nine digits are asked for forty more."""
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
    """A fraction whose parts have many digits was once a double: 183803159792058355/562949953421312."""
    return any(isinstance(part, Number) and abs(part.value) >= 10**11 for part in walk(node))


def _place(node: Node) -> int | None:
    """The last written place of a decimal, through signs and marks; None for what is exact."""
    while isinstance(node, Apply) and node.head in ("neg", "money", "percent"):
        node = node.args[0]
    return node.place if isinstance(node, Number) else None


def _value(node: Node) -> Any:
    try:
        return evaluate(node)
    except ArithmeticError:
        return None


def _near(ours: Any, theirs: Any) -> bool:
    try:
        gap, scale = abs(ours - theirs), max(abs(ours), abs(theirs))
        if not math.isfinite(scale):
            return ours == theirs
    except (OverflowError, TypeError, ValueError):
        return False
    return gap <= 1e-9 * scale or gap < 1e-12


def _close(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, int | Fraction) and isinstance(theirs, int | Fraction):
        return ours == theirs
    return _near(DOUBLES.enter(ours), DOUBLES.enter(theirs))


def _tiny(value: Any) -> bool:
    return value == 0 if isinstance(value, int | Fraction) else abs(value) < 1e-12


def _functions(reference: Node, candidate: Node) -> Match:
    """Expressions with symbols: equal when they agree at points whose coordinates no short identity hits.

    Rational functions are evaluated exactly, so agreement at four such points is as good as proof (Schwartz 1980,
    Zippel 1979). With roots and logarithms only points where both sides are real count, if there are any.
    """
    names = symbols(reference) | symbols(candidate)
    agreed = undefined = complex_points = 0
    for trial in range(1, 13):
        point = _point(names, trial)
        try:
            ours, theirs = evaluate(reference, point), evaluate(candidate, point)
        except Undefined:
            undefined += 1
            continue
        if isinstance(ours, complex) or isinstance(theirs, complex):
            if not _close(ours, theirs):
                if abs(ours.imag) < 1e-9 and abs(theirs.imag) < 1e-9 or not _negative(trial):
                    return Match(False, "values at points")
                complex_points += 1
                continue
        elif not _close(ours, theirs):
            return Match(False, "values at points")
        agreed += 1
        if agreed == 5:
            break
    if agreed >= 3:
        return Match(True, "values at points", 0.99)
    return Match(None, "no points to compare at", 0.0)


def _negative(trial: int) -> bool:
    return trial % 3 == 0


def _point(names: frozenset[str], trial: int) -> dict[str, Fraction]:
    """Fixed rational coordinates for each name; every third point has negative ones."""
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
