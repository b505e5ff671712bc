"""Makes tool declarations acceptable to services, and restores the declared names in their replies.

Services refuse names such as ``math.hypot`` or ``Get Weather``, and types such as ``int``. The providers send the
result of ``request_for_wire``. The sampler calls ``with_declared_names``, so no other code sees the names that were
sent. The journal keys are computed from the declared names and do not change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bestofn.builders.formats.tool_calls import EMPTY_PARAMETERS, with_json_types
from bestofn.builders.records import Completion, JsonObject, Message, Request, Tool

MOST_CHARS = 64  # of a name; OpenAI and Gemini accept 64, Anthropic 128
_FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]")


def wire_names(tools: Sequence[Tool]) -> dict[str, str]:
    """Return a mapping from each declared tool name to the name that is sent.

    A sent name has at most 64 letters, digits, ``_`` and ``-``. Names that services accept are unchanged. If two tools
    would have the same name, a number is added to the second name.
    """
    declared = list(dict.fromkeys(str((tool.get("function") or tool).get("name")) for tool in tools))
    sent = {name: name for name in declared if wire_name(name) == name}
    taken = set(sent)
    for name in declared:
        if name not in sent:
            sent[name] = _unique(wire_name(name), taken)
            taken.add(sent[name])
    return sent


def wire_name(name: str) -> str:
    """Return ``name`` with ``_`` in place of characters that services refuse, and at most ``MOST_CHARS`` characters."""
    return _FORBIDDEN.sub("_", name)[:MOST_CHARS] or "_"


def request_for_wire(request: Request) -> Request:
    """Return ``request`` with tool names and JSON Schemas that services accept."""
    if not request.tools and not any(message.get("tool_calls") or message.get("name") for message in request.messages):
        return request
    names = wire_names(request.tools)

    def sent(name: str) -> str:
        return names.get(name) or wire_name(name)

    return replace(
        request,
        tools=tuple(_tool_for_wire(tool, sent) for tool in request.tools),
        messages=tuple(_message_for_wire(message, sent) for message in request.messages),
    )


def with_declared_names(completion: Completion, tools: Sequence[Tool]) -> Completion:
    """Return ``completion`` with the declared name of each called tool instead of the name that was sent."""
    calls = completion.message.get("tool_calls")
    declared = {sent: name for name, sent in wire_names(tools).items() if sent != name} if calls else {}
    if not declared:
        return completion
    renamed = [_renamed(made, lambda name: declared.get(name, name)) for made in calls or ()]
    return replace(completion, message={**completion.message, "tool_calls": renamed})


def _tool_for_wire(tool: Tool, sent: Callable[[str], str]) -> dict[str, Any]:
    function = tool.get("function")
    if not isinstance(function, Mapping):
        return dict(tool)
    parameters = function.get("parameters")
    changed: dict[str, Any] = {"name": sent(str(function["name"]))}
    if parameters:
        changed["parameters"] = _schema_for_wire(parameters)
    return {**tool, "function": {**function, **changed}}


def _schema_for_wire(parameters: JsonObject) -> JsonObject:
    """Return the schema ``parameters`` with JSON types only. Its outermost type is always an object."""
    schema = _with_lists_of_required(with_json_types(parameters))
    return schema if schema.get("type") == "object" else {**EMPTY_PARAMETERS, **schema, "type": "object"}


def _with_lists_of_required(schema: Any) -> Any:
    """Return ``schema`` without keywords ``required`` that are not lists.

    In older JSON Schemas, ``required`` is a boolean.
    """
    if isinstance(schema, list):
        return [_with_lists_of_required(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    result: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties" and isinstance(value, Mapping):
            result[key] = {name: _with_lists_of_required(item) for name, item in value.items()}
        elif key in ("enum", "default", "const", "examples"):
            result[key] = value
        elif key != "required" or isinstance(value, list):
            result[key] = _with_lists_of_required(value)
    return result


def _message_for_wire(message: Message, sent: Callable[[str], str]) -> Message:
    changed: dict[str, Any] = {}
    if message.get("tool_calls"):
        changed["tool_calls"] = [_renamed(made, sent) for made in message["tool_calls"]]
    if message.get("role") == "tool" and isinstance(message.get("name"), str):
        changed["name"] = sent(message["name"])
    return {**message, **changed} if changed else message


def _renamed(made: JsonObject, name: Callable[[str], str]) -> JsonObject:
    function = made.get("function")
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        return made
    return {**made, "function": {**function, "name": name(function["name"])}}


def _unique(name: str, taken: set[str]) -> str:
    """Return a name that is not in ``taken``: ``name`` itself, or ``name`` with a number at its end."""
    if name not in taken:
        return name
    number = 2
    while (numbered := f"{name[: MOST_CHARS - len(str(number)) - 1]}_{number}") in taken:
        number += 1
    return numbered
