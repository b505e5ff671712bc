"""Represents sets of real numbers (intervals, unions, inequalities, points) as lists of ranges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from bestofn.verifiers.math.arithmetic import CONSTANTS, EXACT, evaluate, is_constant
from bestofn.verifiers.math.nodes import Apply, Node, Number, Symbol, head, symbols

INFINITE = Symbol("infty")
_SETS = frozenset({"R", "Z", "N", "Q"})


@dataclass(frozen=True, slots=True)
class Range:
    """The real numbers from ``low`` to ``high``. A closed end is part of the range. A point has equal, closed ends."""

    low: Node
    high: Node
    closed_low: bool
    closed_high: bool


EVERYTHING = Range(Apply("neg", (INFINITE,)), INFINITE, False, False)


def as_ranges(node: Node) -> list[Range] | None:
    """Return the ranges of ``node``, in any order, or None if it is not a set of real numbers."""
    name = head(node)
    if not isinstance(node, Apply):
        return [] if node == Symbol("emptyset") else _reals(node)
    if name in ("()", "[]", "(]", "[)") and len(node.args) == 2 and all(is_constant(part) for part in node.args):
        return [Range(node.args[0], node.args[1], name[0] == "[", name[1] == "]")]
    if name == "{}":
        return [Range(part, part, True, True) for part in node.args] if all(map(is_constant, node.args)) else None
    if name == "in":
        return as_ranges(node.args[-1])
    if name == "," and any(head(part) in ("in", "!=") for part in node.args):
        return None
    if name in ("union", ","):
        parts = [as_ranges(part) for part in node.args]
        return None if any(part is None for part in parts) else [item for part in parts for item in part or ()]
    if len({symbol for symbol in symbols(node) - CONSTANTS.keys() if not symbol.startswith("mathbb")} - _SETS) > 1:
        return None  # conditions on several unknowns
    if name == "cap":
        return _all_of([as_ranges(part) for part in node.args])
    if name == "setminus":
        return _without(as_ranges(node.args[0]), as_ranges(node.args[1]))
    if name == "chain":
        return _chain(node)
    if name in ("<", "<=", ">", ">=", "!="):
        return _solved(node)
    if (
        name == "="
        and isinstance(node.args[0], Symbol)
        and not is_constant(node.args[0])
        and is_constant(node.args[-1])
    ):
        return [Range(node.args[-1], node.args[-1], True, True)]
    return None


def same_ranges(ours: list[Range], theirs: list[Range], equal: Callable[[Node, Node], bool | None]) -> bool | None:
    """Return whether both lists describe the same set of numbers, or None if undecided."""
    left, right = _joined(ours), _joined(theirs)
    if left is None or right is None:
        return None
    if len(left) != len(right):
        return False
    undecided = False
    for mine, other in zip(left, right, strict=True):
        if (mine.closed_low, mine.closed_high) != (other.closed_low, other.closed_high):
            return False
        for a, b in ((mine.low, other.low), (mine.high, other.high)):
            same = a == b or equal(a, b)
            if same is False:
                return False
            undecided = undecided or same is None
    return None if undecided else True


def _reals(node: Node) -> list[Range] | None:
    if node in (Symbol("mathbb_R"), Symbol("R")):
        return [Range(Apply("neg", (INFINITE,)), INFINITE, False, False)]
    return None


def _solved(node: Apply) -> list[Range] | None:
    """Return the ranges of an inequality such as ``x < 3``, ``3 > x`` or ``|x| < 3``, or None for other forms."""
    left, right = node.args
    name = node.head
    if isinstance(right, Symbol) and is_constant(left) and not is_constant(right):
        left, right = right, left
        name = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(name, name)
    if isinstance(left, Apply) and left.head == "neg" and isinstance(left.args[0], Symbol) and is_constant(right):
        left, right = left.args[0], Apply("neg", (right,))
        name = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(name, name)
    if head(left) == "abs" and is_constant(right):
        return _distance(left.args[0], name, right)  # type: ignore[union-attr]
    if not isinstance(left, Symbol) or is_constant(left) or not is_constant(right):
        return None
    low = Apply("neg", (INFINITE,))
    if name == "!=":
        return [Range(low, right, False, False), Range(right, INFINITE, False, False)]
    if name[0] == "<":
        return [Range(low, right, False, name == "<=")]
    return [Range(right, INFINITE, name == ">=", False)]


def _distance(inside: Node, name: str, bound: Node) -> list[Range] | None:
    """Return the ranges of an inequality such as ``|x - 2| < 3``; None if its form is not supported.

    All numbers must be exact. The expression inside the bars must be linear in one symbol, with slope 1 or -1.
    """
    names = symbols(inside)
    if len(names) != 1:
        return None
    try:
        at = [evaluate(inside, {next(iter(names)): Fraction(x)}) for x in range(3)]
        reach = evaluate(bound)
    except (ArithmeticError, OverflowError):
        return None
    if not all(type(value) in EXACT for value in (*at, reach)):
        return None
    slope = at[1] - at[0]
    if at[2] - at[1] != slope or abs(slope) != 1 or reach <= 0:
        return None
    centre = -at[0] * slope
    low, high = (Number(_whole(Fraction(end))) for end in (centre - reach, centre + reach))
    if name[0] == "<":
        return [Range(low, high, name == "<=", name == "<=")]
    if name == "!=":
        return None
    below, above = (
        Range(Apply("neg", (INFINITE,)), low, False, name == ">="),
        Range(high, INFINITE, name == ">=", False),
    )
    return [below, above]


def _whole(value: Fraction) -> int | Fraction:
    return value.numerator if value.denominator == 1 else value


def _chain(node: Apply) -> list[Range] | None:
    """Return the range of ``a < x <= b`` or ``b >= x > a``. Return None if the chain has another form."""
    if len(node.args) != 2:
        return None
    first, second = node.args
    if not (isinstance(first, Apply) and isinstance(second, Apply)):
        return None
    low, high = first.args[0], second.args[1]
    middle = first.args[1]
    named = isinstance(middle, Symbol) or (isinstance(middle, Apply) and middle.head == "call")
    if not named or not (is_constant(low) and is_constant(high)):
        return None
    if first.head in ("<", "<=") and second.head in ("<", "<="):
        return [Range(low, high, first.head == "<=", second.head == "<=")]
    if first.head in (">", ">=") and second.head in (">", ">="):
        return [Range(high, low, second.head == ">=", first.head == ">=")]
    return None


def _all_of(parts: list[list[Range] | None]) -> list[Range] | None:
    """Return the intersection of ``parts``. If the intersection is empty (``x < -1 and x > 3``), return the union."""
    if any(part is None for part in parts):
        return None
    common: list[Range] | None = [EVERYTHING]
    for part in parts:
        common = _without(common, _without([EVERYTHING], part))
    return common if common or common is None else [item for part in parts for item in part or ()]


def _without(whole: list[Range] | None, cuts: list[Range] | None) -> list[Range] | None:
    """Return ``whole`` minus the ranges in ``cuts``, or None if either set is unknown."""
    if whole is None or cuts is None:
        return None
    ranges = whole
    for cut in cuts:
        left: list[Range] = []
        for item in ranges:
            rest = _cut(item, cut)
            if rest is None:
                return None
            left += rest
        ranges = left
    return ranges


def _cut(item: Range, cut: Range) -> list[Range] | None:
    ends = [_position(end) for end in (item.low, item.high, cut.low, cut.high)]
    if None in ends:
        return None
    low, high, from_, to = ends
    if to < low or from_ > high:  # type: ignore[operator]
        return [item]
    rest = []
    if low < from_ or (low == from_ and item.closed_low and not cut.closed_low):  # type: ignore[operator]
        rest.append(Range(item.low, cut.low, item.closed_low, not cut.closed_low))
    if to < high or (to == high and item.closed_high and not cut.closed_high):  # type: ignore[operator]
        rest.append(Range(cut.high, item.high, not cut.closed_high, item.closed_high))
    return rest


def _position(node: Node) -> float | None:
    try:
        value = evaluate(node)
        return None if isinstance(value, complex) else float(value)
    except (ArithmeticError, OverflowError):
        return None


def _joined(ranges: list[Range]) -> list[Range] | None:
    """Return the ranges in increasing order, with ranges that touch or overlap merged; None if an end has no value."""
    placed: list[tuple[float, float, Range]] = []
    for item in ranges:
        low, high = _position(item.low), _position(item.high)
        if low is None or high is None:
            return None
        placed.append((low, high, item))
    placed.sort(key=lambda entry: (entry[0], not entry[2].closed_low))
    joined: list[Range] = []
    end = 0.0
    for low, high, item in placed:
        last = joined[-1] if joined else None
        if last is None or low > end or (low == end and not (last.closed_high or item.closed_low)):
            joined.append(item)
            end = high
        elif high > end:
            joined[-1] = Range(last.low, item.high, last.closed_low, item.closed_high)
            end = high
        elif high == end and item.closed_high:
            joined[-1] = Range(last.low, last.high, last.closed_low, True)
    return joined
