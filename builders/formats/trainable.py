"""Converts messages to the form that chat templates expect.

``tables`` uses this module for the training tables; ``reward.model_reward`` uses it for reward models.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from bestofn.builders.formats.tool_calls import call_arguments
from bestofn.builders.records import JsonObject, Message, content_text


def trainable(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Convert messages to the form of chat templates: no null values, tool arguments as objects, contents as text."""
    return [trainable_message(message) for message in messages]


def trainable_message(message: Message) -> dict[str, Any]:
    """Convert one message to the form of chat templates. The key ``reasoning`` is dropped."""
    kept = {key: value for key, value in message.items() if value is not None and key != "reasoning"}
    if not isinstance(kept.get("content"), str):
        kept["content"] = content_text(kept.get("content"))
    if kept.get("tool_calls"):
        kept["tool_calls"] = [_call(call) for call in kept["tool_calls"]]
    else:
        kept.pop("tool_calls", None)
    return kept


def renumbered(messages: Sequence[Message]) -> list[Message]:
    """Return ``messages`` with new ids of tool calls in order of appearance: call_0, call_1, ….

    Servers choose the ids at random, so traces are compared in this form.
    """
    ids: dict[object, str] = {}
    for message in messages:
        for call in message.get("tool_calls") or ():
            ids.setdefault(call.get("id"), f"call_{len(ids)}")

    def changed(message: Message) -> Message:
        if not message.get("tool_calls") and "tool_call_id" not in message:
            return message
        result: dict[str, Any] = dict(message)
        if result.get("tool_calls"):
            result["tool_calls"] = [{**call, "id": ids[call.get("id")]} for call in result["tool_calls"]]
        if "tool_call_id" in result:
            result["tool_call_id"] = ids.get(result["tool_call_id"], result["tool_call_id"])
        return result

    return [
        changed(message) if message.get("tool_calls") or "tool_call_id" in message else message for message in messages
    ]


def has_readable_calls(messages: Sequence[Message]) -> bool:
    """Return whether the arguments of each tool call in ``messages`` are a JSON object that can be stored."""
    return all(_arguments(call) is not None for message in messages for call in message.get("tool_calls") or ())


def _call(call: JsonObject) -> dict[str, Any]:
    function = dict(call.get("function") or {})
    if isinstance(function.get("arguments"), str):
        arguments = _arguments(call)
        function["arguments"] = {"_raw": function["arguments"]} if arguments is None else arguments
    return {
        "type": "function",
        **{key: value for key, value in call.items() if value is not None},
        "function": function,
    }


def _arguments(call: JsonObject) -> Any:
    """Return the arguments of ``call`` as an object; None if they cannot be parsed or stored as JSON."""
    try:
        text = json.dumps(call_arguments(call), ensure_ascii=False, allow_nan=False)
        return json.loads(text.encode("utf-8", "replace"))  # removes lone surrogates, which UTF-8 cannot encode
    except (ValueError, TypeError, RecursionError):
        return None
