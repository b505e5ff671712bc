"""Builds the response bodies of OpenAI's Chat Completions and Completions. Used by ``app``."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence

from bestofn.builders.records import Completion, JsonObject, Message

PIECE_CHARS = 24  # characters per chunk of a stream


def chat_answer(model: str, completions: Sequence[Completion], logprobs: bool) -> JsonObject:
    """Build the body of a ``chat.completion`` with one choice per completion."""
    return {
        "id": new_id("chatcmpl"),
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [
            {
                "index": index,
                "message": chat_message(completion),
                "finish_reason": completion.stop_reason,
                "logprobs": {"content": _logprobs(completion), "refusal": None} if logprobs else None,
            }
            for index, completion in enumerate(completions)
        ],
        "usage": usage_counts(
            sum(completion.usage.prompt for completion in completions),
            sum(completion.usage.completion for completion in completions),
        ),
    }


def chat_message(completion: Completion) -> Message:
    """Return the assistant's message. If it has tool calls and no text, its content is None."""
    message = {**completion.message, "refusal": None}
    if completion.reasoning:
        message["reasoning_content"] = completion.reasoning
    if message.get("tool_calls") and not message.get("content"):
        message["content"] = None
    return message


def chat_chunks(answer: JsonObject) -> list[JsonObject]:
    """Split a ``chat.completion`` into objects of type ``chat.completion.chunk`` for a stream.

    The chunks of each choice hold the role, the text in pieces, the tool calls, and the finish reason. The last chunk
    holds the usage.
    """
    head = {key: answer[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    chunks: list[JsonObject] = []
    for choice in answer["choices"]:
        index, deltas = choice["index"], _deltas(choice["message"])
        chunks += [_chunk(head, index, delta) for delta in deltas]
        chunks.append(_chunk(head, index, {}, choice["finish_reason"]))
    chunks.append({**head, "choices": [], "usage": answer["usage"]})
    return chunks


def _deltas(message: Message) -> list[JsonObject]:
    text = [{"content": piece} for piece in pieces(message.get("content") or "")]
    calls = [{"tool_calls": [{"index": place, **call}]} for place, call in enumerate(message.get("tool_calls") or ())]
    return [{"role": "assistant", "content": ""}, *text, *calls]


def _chunk(head: JsonObject, index: int, delta: JsonObject, finish: str | None = None) -> JsonObject:
    return {**head, "choices": [{"index": index, "delta": delta, "finish_reason": finish, "logprobs": None}]}


def pieces(text: str, size: int = PIECE_CHARS) -> list[str]:
    """Split ``text`` into pieces of ``size`` characters. The last piece may be shorter."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def completion_answer(model: str, choices: Sequence[JsonObject], usage: Mapping[str, int]) -> JsonObject:
    """Build the body of a ``text_completion``. The field ``index`` is added to each choice."""
    return {
        "id": new_id("cmpl"),
        "object": "text_completion",
        "created": int(time.time()),
        "model": model,
        "choices": [{"index": index, **choice} for index, choice in enumerate(choices)],
        "usage": dict(usage),
    }


def usage_counts(prompt: int, completion: int) -> dict[str, int]:
    """Return the tokens of prompt and completion and their sum, under the field names of OpenAI's API."""
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def new_id(kind: str) -> str:
    """Return a random id that begins with ``kind``."""
    return f"{kind}-{uuid.uuid4().hex[:24]}"


def _logprobs(completion: Completion) -> list[JsonObject]:
    values = completion.detail.get("token_logprobs") or ()
    texts = completion.detail.get("token_texts") or ()
    return [
        {"token": text, "logprob": value, "bytes": list(text.encode("utf-8", "replace")), "top_logprobs": []}
        for text, value in zip(texts, values, strict=True)
    ]
