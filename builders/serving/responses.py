"""Builds the response bodies of OpenAI's Responses API and the events of a stream. Used by ``app``."""

from __future__ import annotations

import time

from bestofn.builders.formats.tool_calls import call_to_responses
from bestofn.builders.records import Completion, JsonObject
from bestofn.builders.serving.answers import new_id, pieces
from bestofn.builders.serving.bodies import ResponsesBody, parallel


def responses_answer(model: str, completion: Completion, body: ResponsesBody) -> JsonObject:
    """Build the answer to ``body``: the ``response`` object for one completion."""
    truncated = completion.stop_reason == "length"
    usage = completion.usage
    return {
        "id": new_id("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "status": "incomplete" if truncated else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if truncated else None,
        "error": None,
        "model": model,
        "output": _output_items(completion, body),
        "parallel_tool_calls": body.parallel_tool_calls is not False,
        "tool_choice": body.tool_choice or "auto",
        "tools": list(body.tools or ()),
        "usage": {
            "input_tokens": usage.prompt,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": usage.completion,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.prompt + usage.completion,
        },
    }


def _output_items(completion: Completion, body: ResponsesBody) -> list[JsonObject]:
    """Return the output items: reasoning, message and function calls. Empty items are left out."""
    output: list[JsonObject] = []
    if completion.reasoning:
        summary = [{"type": "summary_text", "text": completion.reasoning}]
        output.append({"id": new_id("rs"), "type": "reasoning", "summary": summary})
    if completion.text:
        content = [{"type": "output_text", "text": completion.text, "annotations": []}]
        output.append(
            {"id": new_id("msg"), "type": "message", "role": "assistant", "status": "completed", "content": content}
        )
    for call in parallel(body, completion.message).get("tool_calls") or ():
        output.append({"id": new_id("fc"), "status": "completed", **call_to_responses(call)})
    return output


def responses_events(answer: JsonObject) -> list[JsonObject]:
    """Convert ``answer``, the body of a complete response, to the events of a stream, in order."""
    started = {**answer, "status": "in_progress", "output": [], "usage": None}
    events: list[JsonObject] = [{"type": "response.created", "response": started}]
    for place, item in enumerate(answer["output"]):
        events.append({"type": "response.output_item.added", "output_index": place, "item": item})
        if item["type"] == "message":
            events += _text_events(place, item)
        events.append({"type": "response.output_item.done", "output_index": place, "item": item})
    events.append({"type": f"response.{answer['status']}", "response": dict(answer)})
    return [{"sequence_number": number, **event} for number, event in enumerate(events)]


def _text_events(place: int, item: JsonObject) -> list[JsonObject]:
    where = {"output_index": place, "content_index": 0, "item_id": item["id"]}
    text = item["content"][0]["text"]
    deltas = [{"type": "response.output_text.delta", **where, "delta": piece, "logprobs": []} for piece in pieces(text)]
    return [*deltas, {"type": "response.output_text.done", **where, "text": text, "logprobs": []}]
