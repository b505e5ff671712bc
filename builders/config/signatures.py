"""What a constructor takes: its keyword parameters, their types, and values checked against them."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from typing import Any

from bestofn.builders.errors import ConfigError


def checked(value: Any, hint: Any, where: str) -> Any:
    """``value`` as the type that ``hint`` wants, or a ``ConfigError``. Types unknown to pydantic are not checked."""
    if hint is Any or hint is None or (value is None and is_optional(hint)):
        return value
    from pydantic import ConfigDict, TypeAdapter, ValidationError
    from pydantic.errors import PydanticSchemaGenerationError, PydanticUndefinedAnnotation, PydanticUserError

    try:
        adapter = TypeAdapter(hint, config=None if dataclass_of(hint) else ConfigDict(arbitrary_types_allowed=True))
    except (PydanticSchemaGenerationError, PydanticUndefinedAnnotation, PydanticUserError, TypeError):
        return value
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        found = f"{value!r} ({type(value).__name__})" if _is_plain(value) else f"a {type(value).__name__}"
        reason = error.errors()[0]["msg"]
        raise ConfigError(f"{where} is {found}; expected {_hint_name(hint)}. {reason}.") from error


def keyword_parameters(target: Any) -> dict[str, inspect.Parameter] | None:
    """The keyword parameters of a constructor or function; None when it takes any (``**kwargs``)."""
    parameters = dict(inspect.signature(target).parameters)
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return None
    if inspect.isfunction(target) and has_positional(target):
        return {key: value for key, value in parameters.items() if value.kind is value.KEYWORD_ONLY}
    return {key: value for key, value in parameters.items() if value.kind is not value.VAR_POSITIONAL}


def has_positional(function: Any) -> bool:
    """Whether the function's first parameter is data (a pairing), not a setting."""
    first = next(iter(inspect.signature(function).parameters.values()), None)
    return first is not None and first.default is first.empty and first.kind is not first.KEYWORD_ONLY


def hints_of(target: Any) -> dict[str, Any]:
    function = target.__init__ if inspect.isclass(target) else target
    try:
        return typing.get_type_hints(function)
    except (NameError, TypeError):
        return {}  # names known to the type checker alone


def dataclass_of(hint: Any) -> Any:
    for option in (hint, *typing.get_args(hint)):
        if inspect.isclass(option) and dataclasses.is_dataclass(option):
            return option
    return None


def wants(hint: Any, protocol: Any) -> bool:
    return hint is protocol or protocol in typing.get_args(hint)


def is_optional(hint: Any) -> bool:
    return type(None) in typing.get_args(hint)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool | list | dict)


def _hint_name(hint: Any) -> str:
    if inspect.isclass(hint):
        return hint.__name__
    return str(hint).replace("typing.", "").replace("collections.abc.", "").replace("bestofn.builders.records.", "")


def name_of(target: Any) -> str:
    return getattr(target, "__qualname__", str(target))


def joined(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key
