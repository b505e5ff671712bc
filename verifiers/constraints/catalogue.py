"""The table of constraints: id → function. ``ifeval``, ``ifbench_*``, ``romance``, ``japanese`` and ``own`` fill it.

A check gets the response as its first argument, and the arguments of the constraint by name. It returns the reason why
the response breaks the constraint; "" if the response keeps it.
"""

from __future__ import annotations

import inspect
import math
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
