"""Messages as chat templates want them: what is trained on, and what a reward model is asked about."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bestofn.builders.formats.tool_calls import call_arguments
from bestofn.builders.records import content_text


def trainable(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages as chat templates want them: no empty keys, tool arguments as objects, contents as text."""
    return [trainable_message(message) for message in messages]


def trainable_message(message: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in message.items() if value is not None and key != "reasoning"}
    if not isinstance(kept.get("content"), str):
        kept["content"] = content_text(kept.get("content"))
    if kept.get("tool_calls"):
        kept["tool_calls"] = [_call(call) for call in kept["tool_calls"]]
    else:
        kept.pop("tool_calls", None)
    return kept


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = dict(call.get("function") or {})
    if isinstance(function.get("arguments"), str):
        try:
            text = json.dumps(call_arguments(call), ensure_ascii=False, allow_nan=False)
            function["arguments"] = json.loads(text.encode("utf-8", "replace"))  # half of an emoji is no text
        except (ValueError, RecursionError):  # no object, endless, or nested without end: as it was written
            function["arguments"] = {"_raw": function["arguments"]}
    return {
        "type": "function",
        **{key: value for key, value in call.items() if value is not None},
        "function": function,
    }
