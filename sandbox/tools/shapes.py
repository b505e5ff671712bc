"""Creates JSON Schemas: for arguments from a Python signature, for results from a literal such as ``{"id": str}``.

``mock_tool.tool`` creates the schemas of the catalogue with this module.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

Date = Annotated[str, (("format", "date"), ("description", "ISO date, YYYY-MM-DD"))]
DateTime = Annotated[str, (("format", "date-time"), ("description", "ISO date and time, YYYY-MM-DDTHH:MM"))]
Currency = Annotated[str, (("pattern", "^[A-Za-z]{3}$"), ("description", "ISO 4217 currency code"))]

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", dict: "object", list: "array"}


Shape = Any
"""A literal that shows the shape of a result (see ``shape_schema``)."""

Schema = dict[str, Any]
"""A JSON Schema."""


def arguments_schema(function: Callable[..., Any], described: Mapping[str, str]) -> Schema:
    """Return the schema of all parameters after ``world``. A trailing underscore of a name (``from_``) is removed.

    ``described`` contains descriptions by argument name.
    """
    hints = typing.get_type_hints(function, include_extras=True)
    properties: Schema = {}
    required: list[str] = []
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        name = parameter.name.rstrip("_")
        schema = type_schema(hints[parameter.name])
        if name in described and "description" not in schema:
            schema["description"] = described[name]
        if parameter.default is parameter.empty:
            required.append(name)
        elif parameter.default not in (None, ()):
            schema["default"] = parameter.default
        properties[name] = schema
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def type_schema(hint: Any) -> Schema:
    """Return the schema of one type hint. Raises ``TypeError`` if JSON has no such type."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return type_schema(arguments[0]) | dict(arguments[1])
    if origin in (typing.Union, types.UnionType):
        present = [argument for argument in arguments if argument is not type(None)]
        if len(present) == 1:  # X | None: the argument may be omitted
            return type_schema(present[0])
        return {"anyOf": [type_schema(argument) for argument in present]}
    if origin is Literal:
        return {"type": _PLAIN[type(arguments[0])], "enum": list(arguments)}
    if origin in (list, tuple):
        return {"type": "array", "items": type_schema(arguments[0])} if arguments else {"type": "array"}
    if origin is dict or hint is dict:
        return {"type": "object"}
    if hint is Any:
        return {}
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    raise TypeError(f"JSON has no type for {hint!r}; use str, int, float, bool, list, dict, Literal or Any")


def shape_schema(shape: Shape) -> Schema:
    """Return the schema of a result from a literal such as ``{"id": str, "tags": [str], "note?": str}``.

    A key that ends with ``?`` is optional. A tuple ``(str, None)`` lists alternatives. ``dict`` and ``Any`` allow any
    content. ``{str: float}`` is an object with any keys, whose values all have the same shape.
    """
    if shape is None:
        return {"type": "null"}
    if shape is Any:
        return {}
    if isinstance(shape, tuple):
        return {"anyOf": [shape_schema(alternative) for alternative in shape]}
    if isinstance(shape, list):
        return {"type": "array", "items": shape_schema(shape[0])}
    if isinstance(shape, Mapping):
        if str in shape:
            return {"type": "object", "additionalProperties": shape_schema(shape[str])}
        return {
            "type": "object",
            "properties": {key.rstrip("?"): shape_schema(value) for key, value in shape.items()},
            "required": [key for key in shape if not key.endswith("?")],
            "additionalProperties": False,
        }
    return type_schema(shape)
