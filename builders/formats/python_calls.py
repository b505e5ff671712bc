"""Parses tool calls in Python notation: ``[f(a=1), Get Weather(city="Oslo")]``. ``written_calls`` uses it.

The text is never parsed as a program. So names may contain spaces, as in ToolACE, and an argument may be a reserved
word (``from="USD"``). A value is a Python literal or JSON. A call with positional arguments is not parsed, because the
names of these arguments are unknown.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from bestofn.builders.formats.tool_calls import with_json_types
from bestofn.builders.records import JsonObject, Tool

UNREADABLE = (ValueError, TypeError, SyntaxError, RecursionError, MemoryError)
_NAME = re.compile(r"[^\W\d][\w.\-]*\Z")
_TO_BRACKET = re.compile(r"[^()\[\]{}=,;:\"'\n]{1,200}\(")
_KEY = re.compile(r"\s*([^\W\d][\w.\- ]{0,200}?)\s*=(?!=)")
_BETWEEN = re.compile(r"[\s,;]*")
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def python_calls(text: str, names: Collection[str] = ()) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls in ``text`` as (name, arguments); [] unless the text consists of calls only.

    ``names`` are the declared tools. Only a declared tool, or a call in a list, may have a name with spaces.
    """
    text = text.strip()
    in_list = text.startswith("[") and text.endswith("]")
    body = text[1:-1] if in_list else text
    found: list[tuple[str, dict[str, Any]]] = []
    at = _past(_BETWEEN, body, 0)
    while at < len(body):
        head = _TO_BRACKET.match(body, at)
        if not head:
            return []
        name = head[0][:-1].strip()
        if not (_NAME.match(name) or name in names or (in_list and name)):
            return []
        read = _arguments(body, head.end())
        if read is None:
            return []
        arguments, at = read
        found.append((name, arguments))
        at = _past(_BETWEEN, body, at)
    return found


def literal(text: str) -> Any:
    """Return the value of ``text``, a Python literal or JSON. Raises ``ValueError`` if ``text`` is neither."""
    for parse in (ast.literal_eval, json.loads):
        try:
            value = parse(text.strip())
            json.dumps(value)
        except UNREADABLE:
            continue
        return value
    raise ValueError(f"{text[:80]!r} is neither a Python literal nor JSON")


def value_end(text: str, at: int) -> int:
    """Return the position of the comma or bracket that ends the value at ``at``; -1 if there is none.

    Commas and brackets within strings and within nested brackets do not end the value.
    """
    closings: list[str] = []
    while at < len(text):
        char = text[at]
        if char in "\"'":
            at = _string_end(text, at)
            continue
        if char in _CLOSING:
            closings.append(_CLOSING[char])
        elif not closings and char in ",)]}":
            return at
        elif char in ")]}" and closings.pop() != char:
            return -1
        at += 1
    return -1


def _arguments(text: str, at: int) -> tuple[dict[str, Any], int] | None:
    """Return (arguments from ``at`` on, position after the closing bracket); None if they cannot be parsed."""
    arguments: dict[str, Any] = {}
    while True:
        at = _past(_BETWEEN, text, at)
        if text[at : at + 1] == ")":
            return arguments, at + 1
        key = _KEY.match(text, at)
        end = value_end(text, key.end()) if key else -1
        if key is None or end < 0 or key[1] in arguments:
            return None
        try:
            arguments[key[1]] = literal(text[key.end() : end])
        except ValueError:
            return None
        at = end


def _string_end(text: str, at: int) -> int:
    """Return the position after the string that begins at ``at``; the end of the text if the string is not closed."""
    quote = text[at] * 3 if text.startswith(text[at] * 3, at) else text[at]
    at += len(quote)
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text.startswith(quote, at):
            return at + len(quote)
        else:
            at += 1
    return len(text)


def _past(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


# The names of the declared tools of a query and the types of their arguments, for the parsers of written calls.


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
