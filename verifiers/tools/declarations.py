"""Checks a tool call against the declared tools. ``verifier`` uses this module."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bestofn.builders.formats.json_schema import Undecided, violation
from bestofn.builders.formats.tool_calls import call_arguments, call_name, to_chat
from bestofn.builders.records import JsonObject, Tool


@dataclass(frozen=True, slots=True)
class MadeCall:
    """One tool call of the model. ``problem`` is the reason why the call is invalid, or "" if it is valid."""

    name: str
    arguments: JsonObject | None  # None if the arguments are not a JSON object
    problem: str = ""
    kind: str = ""  # kind of the problem: "name", "json" or "schema"; "" if there is none
    undecided: bool = False  # the validation of the arguments exceeded its limits


def same_name(one: str, other: str) -> bool:
    """Return whether two names refer to the same tool. Some services rename ``math.hypot`` to ``math_hypot``."""
    return _wire_name(one) == _wire_name(other) or _bare_name(one) == _bare_name(other)


def declared(tools: Sequence[Tool], name: str) -> JsonObject | None:
    """Return the ``function`` object (Chat Completions format) of the tool ``name``, or None if it is not declared."""
    for tool in tools:
        function = to_chat(tool)["function"]
        if same_name(function["name"], name):
            return function
    return None


def defaults_of(function: JsonObject | None) -> dict[str, object]:
    """Return the declared default values as {argument: default}. Arguments that have no default are left out."""
    properties = ((function or {}).get("parameters") or {}).get("properties") or {}
    return {
        name: schema["default"]
        for name, schema in properties.items()
        if isinstance(schema, Mapping) and schema.get("default") is not None
    }


def examine(tool_call: JsonObject, tools: Sequence[Tool], *, strict: bool = True) -> MadeCall:
    """Check one call against the declared ``tools``. ``strict`` rejects arguments that the schema does not define.

    If ``tools`` is empty, every call that can be parsed is valid. If a declared schema is invalid, all arguments are
    accepted.
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
        return MadeCall(name, arguments, f"there is no tool {name!r}; the declared tools are {known}", "name")
    try:
        wrong = schema_problem(function.get("parameters") or {}, arguments, strict=strict)
    except Undecided:
        return MadeCall(name, arguments, undecided=True)
    return MadeCall(name, arguments, f"{name}: {wrong}" if wrong else "", "schema" if wrong else "")


def schema_problem(schema: JsonObject, arguments: JsonObject, *, strict: bool = True) -> str:
    """Return why ``arguments`` do not match the JSON Schema, or "". A null optional argument counts as absent.

    Raises ``Undecided`` if the validation exceeds its limits.
    """
    required = schema.get("required")
    required = required if isinstance(required, list) else []
    given = {key: value for key, value in arguments.items() if value is not None or key in required}
    properties = schema.get("properties")
    if strict and isinstance(properties, Mapping) and not schema.get("additionalProperties"):
        unknown = sorted(set(given) - set(properties))
        if unknown and not schema.get("patternProperties"):
            return f"unknown argument {unknown[0]!r}; the tool takes {', '.join(sorted(properties)) or 'none'}"
    return violation(schema, given)


def _wire_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def _bare_name(name: str) -> str:
    """Return ``name`` without the prefix ``functions.``, which some models add to every tool name."""
    return _wire_name(name.removeprefix("functions."))
