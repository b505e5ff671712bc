"""Checks the messages and tools of requests, and converts them to the Chat Completions format. Used by ``bodies``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bestofn.builders.errors import RequestError
from bestofn.builders.formats.tool_calls import call_from_responses
from bestofn.builders.records import JsonObject, Message, Tool, ToolChoice

ROLES = ("system", "developer", "user", "assistant", "tool")
TEXT_PARTS = ("text", "input_text", "output_text", "refusal", "summary_text")


def checked_messages(messages: Sequence[JsonObject]) -> tuple[Message, ...]:
    """Return ``messages`` for the chat template; the role ``developer`` becomes ``system``.

    Raises ``RequestError`` if the prompt is empty, or if a message has an unknown role or content that is not text.
    """
    for place, message in enumerate(messages):
        if message.get("role") not in ROLES:
            raise _refused(f"messages[{place}].role is {message.get('role')!r}; expected one of {', '.join(ROLES)}")
        _check_content(message.get("content"), f"messages[{place}].content")
        for number, call in enumerate(_listed(message.get("tool_calls"), f"messages[{place}].tool_calls")):
            _check_function(call, f"messages[{place}].tool_calls[{number}]")
            _check_arguments(call, f"messages[{place}].tool_calls[{number}]")
    if not any(message.get("content") or message.get("tool_calls") for message in messages):
        raise _refused("the prompt is empty; expected a message with content")
    return tuple(
        {**message, "role": "system"} if message["role"] == "developer" else dict(message) for message in messages
    )


def _check_content(content: object, where: str) -> None:
    if content is None or isinstance(content, str):
        return
    for number, part in enumerate(_listed(content, where, "text or a list of parts")):
        kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
        if kind not in TEXT_PARTS:
            raise _refused(
                f"{where}[{number}] is of type {kind!r}; this server reads only text, no images and no audio"
            )
        if not isinstance(part.get("refusal" if kind == "refusal" else "text"), str):
            raise _refused(f"{where}[{number}] has no text; expected a part with the key text")


def checked_tools(tools: Sequence[JsonObject]) -> tuple[Tool, ...]:
    """Return ``tools`` as a tuple. Raises ``RequestError`` if a tool is not the declaration of a function."""
    for place, tool in enumerate(tools):
        where = f"tools[{place}]"
        if tool.get("type") != "function":
            raise _refused(f"{where}.type is {tool.get('type')!r}; this server has only function tools")
        _check_function(tool, where)
        parameters = tool["function"].get("parameters")
        if parameters is not None and not isinstance(parameters, Mapping):
            raise _refused(f"{where}.function.parameters is {parameters!r:.80}; expected a JSON Schema")
    return tuple(tools)


def _check_function(holder: object, where: str) -> None:
    function = holder.get("function") if isinstance(holder, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str) or not name:
        raise _refused(f"{where}.function.name is {name!r}; expected the name of a function")


def _check_arguments(call: JsonObject, where: str) -> None:
    arguments = call["function"].get("arguments")
    if not isinstance(arguments, str | Mapping):
        raise _refused(f"{where}.function.arguments is {arguments!r:.80}; expected the text of a JSON object")


def tools_of_choice(tools: tuple[Tool, ...], choice: object) -> tuple[tuple[Tool, ...], ToolChoice]:
    """Return the tools that the model may call under ``choice``, and whether it must call one."""
    if choice is None or choice == "auto":
        return tools, "auto"
    if choice == "none":
        return tools, "none"
    if not tools:
        raise _refused(f"tool_choice is {choice!r} without tools; expected a list of tools")
    if choice == "required":
        return tools, "required"
    names, mode = _chosen_names(choice)
    if missing := sorted(names - {tool["function"]["name"] for tool in tools}):
        raise _refused(f"tool_choice names {missing[0]}, which is not in tools")
    return tuple(tool for tool in tools if tool["function"]["name"] in names), mode


def _chosen_names(choice: object) -> tuple[set[str], ToolChoice]:
    """Return the tool names in a tool choice, and its mode.

    Raises ``RequestError`` if the choice is not of the type ``function`` or ``allowed_tools``.
    """
    if isinstance(choice, Mapping) and choice.get("type") == "function":
        return {_name_in(choice)}, "required"
    if isinstance(choice, Mapping) and choice.get("type") == "allowed_tools":
        allowed = choice.get("allowed_tools", choice)
        if isinstance(allowed, Mapping):
            names = {_name_in(tool) for tool in _listed(allowed.get("tools"), "tool_choice.tools")}
            return names, "required" if allowed.get("mode") == "required" else "auto"
    raise _refused(f"tool_choice is {choice!r:.120}; expected auto, none, required, or the name of a function")


def _name_in(choice: JsonObject) -> str:
    function = choice.get("function", choice) if isinstance(choice, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str):
        raise _refused(f"tool_choice is {choice!r:.120}; expected the name of a function")
    return name


def messages_of_items(items: Sequence[JsonObject]) -> list[Message]:
    """Convert the input items of a Responses request to chat messages.

    Consecutive tool calls become one assistant message. Reasoning is left out. Raises ``RequestError`` for other items.
    """
    messages: list[dict[str, Any]] = []
    for place, item in enumerate(items):
        kind = item.get("type", "message")
        if kind == "message":
            messages.append({"role": item.get("role"), "content": item.get("content")})
        elif kind == "function_call":
            if not isinstance(item.get("name"), str):
                raise _refused(f"input[{place}].name is {item.get('name')!r}; expected the name of a function")
            call = call_from_responses(item)
            if messages and messages[-1].get("tool_calls"):
                messages[-1]["tool_calls"].append(call)
            else:
                messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        elif kind == "function_call_output":
            messages.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")})
        elif kind != "reasoning":
            raise _refused(f"input[{place}].type is {kind!r}, which this server does not support")
    return [*messages]


def _listed(value: object, where: str, expected: str = "list") -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise _refused(f"{where} is {value!r:.80}; expected a {expected}")
    return value


def _refused(message: str) -> RequestError:
    return RequestError(message, status=400)
