"""Recognises values that already have the type of their setting. ``signatures`` uses this module.

pydantic converts and checks all other values. Its import takes longer than all checks of a usual configuration.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, Union, cast

from annotated_types import Ge, Gt, Interval, Le, Lt

PLAIN = (bool, int, float, str, type(None))


def has_exact_type(value: object, hint: Any) -> bool:
    """Return whether ``value`` has the type ``hint`` without a conversion.

    If True, pydantic accepts ``value`` and returns an equal one of the same type. If False, only pydantic can decide.
    """
    if hint is Any:
        return True
    if hint in PLAIN:
        return type(value) is hint
    if isinstance(hint, type) and typing.get_origin(hint) is None:
        return _is_instance(value, hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return any(has_exact_type(value, one) for one in arguments)
    if origin is Annotated:
        return has_exact_type(value, arguments[0]) and all(_is_within(value, limit) for limit in arguments[1:])
    if origin is Literal:
        return type(value) is str and value in arguments
    if origin is Callable:
        return callable(value)
    return _is_exact_container(value, origin, arguments)


def _is_instance(value: object, hint: type) -> bool:
    """Return whether ``hint`` is a dataclass or a runtime protocol, and ``value`` belongs to it."""
    if dataclasses.is_dataclass(hint):
        return type(value) is hint
    return bool(getattr(hint, "_is_runtime_protocol", False)) and isinstance(value, hint)


def _is_exact_container(value: object, origin: object, arguments: Sequence[Any]) -> bool:
    if origin in (Sequence, list) and type(value) is list:
        return all(has_exact_type(one, arguments[0]) for one in cast("list[object]", value))
    if origin in (Mapping, dict) and type(value) is dict:
        key, item = arguments
        items = cast("dict[object, object]", value).items()
        return all(has_exact_type(name, key) and has_exact_type(one, item) for name, one in items)
    return False


def _is_within(value: object, limit: object) -> bool:
    """Return whether the number ``value`` satisfies ``limit``; False if ``limit`` is of another type."""
    number = cast("float", value)
    match limit:
        case Ge(ge=least):
            return number >= cast("float", least)
        case Gt(gt=below):
            return number > cast("float", below)
        case Le(le=most):
            return number <= cast("float", most)
        case Lt(lt=above):
            return number < cast("float", above)
        case Interval():
            return all(_is_within(value, one) for one in limit)
        case _:
            return False
