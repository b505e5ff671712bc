"""The names of the declared tools of a query and the types of their arguments, for the parsers of written calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bestofn.builders.formats.python_calls import literal
from bestofn.builders.formats.tool_calls import with_json_types
from bestofn.builders.records import JsonObject, Tool


class Declared:
    """The declared tools, with the schemas of their arguments. ``name in declared`` is true for a declared tool."""

    def __init__(self, tools: Sequence[Tool] = ()) -> None:
        self._properties: dict[str, JsonObject] = {}
        for tool in tools:
            function = tool.get("function") or tool
            schema = function.get("parameters") or {}
            properties = schema.get("properties") if isinstance(schema, Mapping) else None
            self._properties[str(function.get("name"))] = properties if isinstance(properties, Mapping) else {}

    def __contains__(self, name: object) -> bool:
        return name in self._properties

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the declared tools."""
        return tuple(self._properties)

    def value(self, tool: str, argument: str, text: str, as_text: bool | None = None) -> Any:
        """Return the value of an argument that a template wrote as plain text.

        If the declared type is a string, the text is returned unchanged; for any other type it is parsed. If the type
        is unknown, the text is parsed only if it is JSON or a Python literal other than a string. ``as_text`` has
        priority over the declared type: True means a string, and False means another type.
        """
        types = _types(self._properties.get(tool, {}).get(argument))
        if as_text or (as_text is None and types == {"string"}):
            return text
        try:
            value = literal(text)
        except ValueError:
            return text
        return text if isinstance(value, str) and as_text is None and (not types or "string" in types) else value


def _types(schema: object) -> set[str]:
    """Return the JSON types that ``schema`` allows; an empty set if they are unknown."""
    given = with_json_types(schema)
    kind = given.get("type") if isinstance(given, Mapping) else None
    return {kind} if isinstance(kind, str) else set(kind or ())
