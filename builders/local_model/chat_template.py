"""Converts messages to the format that chat templates accept. Used by ``engine``."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping

from bestofn.builders.errors import RequestError
from bestofn.builders.records import JsonObject, Message, Tool, content_text


def check_effort(effort: str | None, model: str, template: str | None, *, harmony: bool) -> None:
    """Raise ``RequestError`` if ``effort`` is set and the prompts of ``model`` have no reasoning effort.

    ``harmony`` is true if a prompt without a ``template`` is rendered in the Harmony format.
    """
    if effort and ("reasoning_effort" not in template if template else not harmony):
        raise RequestError(
            f"reasoning_effort is {effort}, but the prompt format of {model} has no reasoning effort; "
            "remove this field",
            status=400,
        )


def template_message(message: Message, *, thinking: bool = False) -> dict[str, object]:
    """Convert ``message`` for a chat template.

    The content becomes text, and the arguments of tool calls become JSON objects. Keys that chat templates do not use
    are left out. If ``thinking`` is true, the reasoning has the key ``thinking``, which the template of gpt-oss reads.
    """
    result: dict[str, object] = {"role": message["role"], "content": content_text(message.get("content"))}
    result |= {key: message[key] for key in ("tool_call_id", "name") if message.get(key)}
    if thinking and message.get("reasoning"):
        result["thinking"] = message["reasoning"]
    if message.get("tool_calls"):
        result["tool_calls"] = [_call(call) for call in message["tool_calls"]]
    return result


def template_tool(tool: Tool) -> dict[str, object]:
    """Convert ``tool`` for a chat template.

    A function without ``parameters`` gets an empty object as ``parameters``.
    """
    function = tool.get("function")
    if not isinstance(function, Mapping) or function.get("parameters") is not None:
        return dict(tool)
    return {**tool, "function": {**function, "parameters": {"type": "object", "properties": {}}}}


def _call(call: JsonObject) -> dict[str, object]:
    function: dict[str, object] = {"arguments": {}, **(call.get("function") or {})}
    if isinstance(function.get("arguments"), str):
        with contextlib.suppress(json.JSONDecodeError):  # arguments that are not valid JSON stay a string
            function["arguments"] = json.loads(str(function["arguments"]) or "{}")
    return {"type": "function", "id": call.get("id") or "", "function": function}
