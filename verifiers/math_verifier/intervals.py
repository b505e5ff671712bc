"""Sets of real numbers as ranges: intervals, unions of them, solved inequalities, single points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from verifiers.math_verifier.arithmetic import evaluate, is_constant
from verifiers.math_verifier.nodes import Apply, Node, Symbol, head

INFINITE = Symbol("infty")


@dataclass(frozen=True, slots=True)
class Range:
    """From ``low`` to ``high``; the ends belong to it where closed. A point is a closed range of length zero."""

    low: Node
    high: Node
    closed_low: bool
    closed_high: bool


def as_ranges(node: Node) -> list[Range] | None:
    """The ranges that ``node`` stands for, in no order; None when it is no set of real numbers."""
    name = head(node)
    if not isinstance(node, Apply):
        return [] if node == Symbol("emptyset") else _reals(node)
    if name in ("()", "[]", "(]", "[)") and len(node.args) == 2 and all(is_constant(part) for part in node.args):
        return [Range(node.args[0], node.args[1], name[0] == "[", name[1] == "]")]
    if name == "{}":
        return [Range(part, part, True, True) for part in node.args] if all(map(is_constant, node.args)) else None
    if name == "in":
        return as_ranges(node.args[-1])
    if name in ("union", ","):
        parts = [as_ranges(part) for part in node.args]
        return None if any(part is None for part in parts) else [item for part in parts for item in part or ()]
    if name == "setminus":
        return _without_points(as_ranges(node.args[0]), as_ranges(node.args[1]))
    if name == "chain":
        return _chain(node)
    if name in ("<", "<=", ">", ">=", "!="):
        return _solved(node)
    return None


def same_ranges(ours: list[Range], theirs: list[Range], equal: Callable[[Node, Node], bool | None]) -> bool | None:
    """Whether both lists cover the same numbers, after touching ranges are joined."""
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
    """``x < 3``, ``3 > x``: a symbol on one side, a constant on the other."""
    left, right = node.args
    name = node.head
    if isinstance(right, Symbol) and is_constant(left) and not is_constant(right):
        left, right = right, left
        name = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(name, name)
    if isinstance(left, Apply) and left.head == "neg" and isinstance(left.args[0], Symbol) and is_constant(right):
        left, right = left.args[0], Apply("neg", (right,))
        name = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(name, name)
    if not isinstance(left, Symbol) or is_constant(left) or not is_constant(right):
        return None
    low = Apply("neg", (INFINITE,))
    if name == "!=":
        return [Range(low, right, False, False), Range(right, INFINITE, False, False)]
    if name[0] == "<":
        return [Range(low, right, False, name == "<=")]
    return [Range(right, INFINITE, name == ">=", False)]


def _chain(node: Apply) -> list[Range] | None:
    """``a < x <= b`` or ``b >= x > a``."""
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


def _without_points(whole: list[Range] | None, points: list[Range] | None) -> list[Range] | None:
    if whole is None or points is None or any(point.low != point.high for point in points):
        return None
    ranges = whole
    for point in points:
        at = _position(point.low)
        split: list[Range] = []
        for item in ranges:
            low, high = _position(item.low), _position(item.high)
            if at is None or low is None or high is None:
                return None
            if low < at < high:
                split += [
                    Range(item.low, point.low, item.closed_low, False),
                    Range(point.low, item.high, False, item.closed_high),
                ]
            else:
                split.append(Range(item.low, item.high, item.closed_low and at != low, item.closed_high and at != high))
        ranges = split
    return ranges


def _position(node: Node) -> float | None:
    try:
        value = evaluate(node)
        return None if isinstance(value, complex) else float(value)
    except (ArithmeticError, OverflowError):
        return None


def _joined(ranges: list[Range]) -> list[Range] | None:
    """In order, with ranges that touch or overlap made one."""
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
