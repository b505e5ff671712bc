"""Compares counts with the bounds of constraints."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

RELATIONS: dict[str, Callable[[float, float], bool]] = {
    "less than": operator.lt,
    "fewer than": operator.lt,
    "at least": operator.ge,
    "at most": operator.le,
    "more than": operator.gt,
    "exactly": operator.eq,
    "around": lambda count, bound: abs(count - bound) <= max(round(bound * 0.1), 1),
    "al menos": operator.ge,
    "como máximo": operator.le,
    "moins de": operator.lt,
    "au moins": operator.ge,
    "未満": operator.lt,
    "以上": operator.ge,
}
"""The words for a relation, in the languages of the datasets. ``around`` allows a tenth of the bound."""


def compare(count: int, relation: str, bound: float, unit: str) -> str:
    """Return the problem if ``count`` breaks a limit such as "at least" (``relation``) 3 (``bound``); otherwise "".

    Raises ``ValueError`` if the relation is unknown.
    """
    if relation not in RELATIONS:
        raise ValueError(f"the relation is {relation!r}; expected one of {', '.join(RELATIONS)}")
    return "" if RELATIONS[relation](count, bound) else f"{count} {unit}; expected {relation} {bound:g}"


def between(count: int, unit: str, least: float | None, most: float | None, exactly: float | None = None) -> str:
    """Return why ``count`` is outside the bounds; "" if it is inside. None means no bound.

    Raises ``ValueError`` if no bound is given, or if no count can be inside the bounds.
    """
    bounds = {"at least": least, "at most": most, "exactly": exactly}
    given = {relation: bound for relation, bound in bounds.items() if bound is not None}
    if not given:
        raise ValueError("no bound is given; expected min, max or exactly")
    lowest = max(bound for bound in (0, least, exactly) if bound is not None)
    highest = min(bound for bound in (math.inf, most, exactly) if bound is not None)
    if lowest > highest:
        wanted = " and ".join(f"{relation} {bound:g}" for relation, bound in given.items())
        raise ValueError(f"no count satisfies the bounds: {wanted}")
    problems = (compare(count, relation, bound, unit) for relation, bound in given.items())
    return next((problem for problem in problems if problem), "")


def unless(kept: object, problem: str) -> str:
    """Return "" if ``kept`` is true, otherwise ``problem``."""
    return "" if kept else problem
