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


def _call(call: JsonObject) -> dict[str, Any]:
    function = dict(call.get("function") or {})
    if isinstance(function.get("arguments"), str):
        try:
            text = json.dumps(call_arguments(call), ensure_ascii=False, allow_nan=False)
            function["arguments"] = json.loads(
                text.encode("utf-8", "replace")
            )  # removes lone surrogates, which UTF-8 cannot encode
        except (ValueError, RecursionError):  # not an object, not finite, or nested too deeply
            function["arguments"] = {"_raw": function["arguments"]}
    return {
        "type": "function",
        **{key: value for key, value in call.items() if value is not None},
        "function": function,
    }
