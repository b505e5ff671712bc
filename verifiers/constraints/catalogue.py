"""The table of constraints: id → function. ``ifeval``, ``ifbench``, ``iftrain``, ``m_ifeval`` and ``general`` fill it.

A check gets the response as its first argument, and the arguments of the constraint by name. It returns the reason why
the response breaks the constraint; "" if the response keeps it.
"""

from __future__ import annotations

import inspect
import math
import operator
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

Check = Callable[..., str]
Function = TypeVar("Function", bound=Check)

CHECKS: dict[str, Check] = {}


class UndecidedError(Exception):
    """Raised if a check cannot decide whether a response keeps the constraint. The message is the reason."""


def constraint(*ids: str) -> Callable[[Function], Function]:
    """Register a check under ``ids``. An id with a language prefix, such as ``ja:…``, applies only to this language."""

    def register(check: Function) -> Function:
        for one in ids:
            if one in CHECKS:
                raise ValueError(f"two checks are registered as {one!r}")
            CHECKS[one] = check
        return check

    return register


def find_check(constraint_id: str, language: str) -> Check:
    """Return the check of ``constraint_id`` in ``language``. Raises ``UndecidedError`` if there is none."""
    check = CHECKS.get(f"{language}:{constraint_id}") or CHECKS.get(constraint_id)
    if check is None:
        raise UndecidedError(f"there is no check for the constraint {constraint_id!r}")
    return check


def run_check(constraint_id: str, language: str, text: str, arguments: Mapping[str, object]) -> str:
    """Return why ``text`` breaks the constraint; "" if it keeps it.

    Raises ``UndecidedError`` if the constraint is unknown, or if its arguments are missing, unknown or invalid.
    """
    check = find_check(constraint_id, language)
    given = {name: one for name, value in arguments.items() if (one := _plain(value)) is not None}
    signature = inspect.signature(check)
    try:
        bound = signature.bind(_comparable(text), **given)
        for name in given:
            bound.arguments[name] = _typed(given[name], signature.parameters[name])
        return check(*bound.args, **bound.kwargs)
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise UndecidedError(f"the arguments of {constraint_id!r} cannot be read: {error}") from None


def _plain(value: object) -> object:
    """Return a whole float as an integer and NaN as None, because Parquet tables hold counts as floats."""
    if isinstance(value, float):
        return None if math.isnan(value) else int(value) if value.is_integer() else value
    return _comparable(value) if isinstance(value, str) else value


def _comparable(text: str) -> str:
    """Return ``text`` with composed Unicode letters and straight apostrophes, so that equal words compare as equal."""
    return unicodedata.normalize("NFC", text).replace("\u2019", "'").replace("\u02bc", "'")


def _typed(value: object, parameter: inspect.Parameter) -> object:
    """Convert an argument to the type of ``parameter``. One text becomes a list of one if a list is expected.

    Raises ``ValueError`` if the argument has another type.
    """
    if parameter.annotation == "Sequence[str]":
        several = [value] if isinstance(value, str) else value
        is_empty = not several and parameter.default is inspect.Parameter.empty
        if not isinstance(several, Sequence) or is_empty or not all(isinstance(one, str) and one for one in several):
            raise ValueError(f"{parameter.name} is {value!r:.80}; expected a list of texts that are not empty")
        return [_comparable(one) for one in several]
    if isinstance(value, bool) and parameter.annotation.split(" ")[0] in ("int", "float"):
        raise ValueError(f"{parameter.name} is {value}; expected a number")
    return value


# Compares counts with the bounds of constraints.

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
