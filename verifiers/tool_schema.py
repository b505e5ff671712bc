"""Whether a call is one that the declared tools can take."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bestofn.builders.formats.json_schema import problem
from bestofn.builders.formats.tool_calls import call_arguments, call_name, to_chat


@dataclass(frozen=True, slots=True)
class MadeCall:
    """One call as it was made, and what the declared tools find wrong with it ("" = nothing)."""

    name: str
    arguments: Mapping[str, Any] | None  # None: not a JSON object
    problem: str = ""
    kind: str = ""  # name, json or schema


def same_name(one: str, other: str) -> bool:
    """Services allow only ``[A-Za-z0-9_-]`` in a name, so ``math.hypot`` comes back as ``math_hypot``."""
    return _wire_name(one) == _wire_name(other) or _bare_name(one) == _bare_name(other)


def declared(tools: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any] | None:
    """The declaration of ``name`` in the Chat Completions shape's ``function``, or None."""
    for tool in tools:
        function = to_chat(tool)["function"]
        if same_name(function["name"], name):
            return function
    return None


def defaults_of(function: Mapping[str, Any] | None) -> dict[str, Any]:
    """Argument -> declared default."""
    properties = ((function or {}).get("parameters") or {}).get("properties") or {}
    return {
        name: schema["default"]
        for name, schema in properties.items()
        if isinstance(schema, Mapping) and schema.get("default") is not None
    }


def examine(tool_call: Mapping[str, Any], tools: Sequence[Mapping[str, Any]], *, strict: bool = True) -> MadeCall:
    """Check one call against ``tools``. ``strict`` refuses arguments that the schema does not name.

    With no tools declared only the form is checked. A schema that is itself broken refuses nothing.
    """
    name = call_name(tool_call)
    try:
        arguments = call_arguments(tool_call)
    except ValueError as error:
        return MadeCall(name, None, f"{name}: {error}", "json")
    if not tools:
        return MadeCall(name, arguments)
    function = declared(tools, name)
    if function is None:
        known = ", ".join(sorted(to_chat(tool)["function"]["name"] for tool in tools))
        return MadeCall(name, arguments, f"there is no tool {name!r}; declared are {known}", "name")
    wrong = schema_problem(function.get("parameters") or {}, arguments, strict=strict)
    return MadeCall(name, arguments, f"{name}: {wrong}" if wrong else "", "schema" if wrong else "")


def schema_problem(schema: Mapping[str, Any], arguments: Mapping[str, Any], *, strict: bool = True) -> str:
    """What JSON Schema finds wrong with ``arguments`` ("" = nothing). A null optional argument counts as absent."""
    required = schema.get("required")
    required = required if isinstance(required, list) else []
    given = {key: value for key, value in arguments.items() if value is not None or key in required}
    properties = schema.get("properties")
    if strict and isinstance(properties, Mapping) and not schema.get("additionalProperties"):
        unknown = sorted(set(given) - set(properties))
        if unknown and not schema.get("patternProperties"):
            return f"unknown argument {unknown[0]!r}; it takes {', '.join(sorted(properties)) or 'none'}"
    return problem(schema, given)


def _wire_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def _bare_name(name: str) -> str:
    """Without the namespace that some models write before every tool."""
    return _wire_name(name.removeprefix("functions."))
