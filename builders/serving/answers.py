"""Builds the response bodies of OpenAI's Chat Completions and Completions. Used by ``app``."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence

from bestofn.builders.records import Completion, JsonObject, Message
from bestofn.builders.serving.bodies import ChatBody, parallel

PIECE_CHARS = 24  # characters per chunk of a stream


def chat_answer(model: str, completions: Sequence[Completion], body: ChatBody) -> JsonObject:
    """Build the answer to ``body``: a ``chat.completion`` with one choice per completion."""
    return {
        "id": new_id("chatcmpl"),
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [
            {
                "index": index,
                "message": parallel(body, chat_message(completion)),
                "finish_reason": completion.stop_reason,
                "logprobs": {"content": _logprobs(completion), "refusal": None} if body.logprobs else None,
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


def chat_chunks(answer: JsonObject, *, usage: bool) -> list[JsonObject]:
    """Split a ``chat.completion`` into objects of type ``chat.completion.chunk`` for a stream.

    The chunks of each choice hold the role, the text in pieces, the tool calls, and the finish reason. A choice with
    log-probabilities has one piece per token. With ``usage``, a last chunk without choices holds the usage.
    """
    head = {key: answer[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    head |= {"usage": None} if usage else {}
    chunks: list[JsonObject] = []
    for choice in answer["choices"]:
        index = choice["index"]
        chunks += [_chunk(head, index, delta, logprobs=logprobs) for delta, logprobs in _deltas(choice)]
        chunks.append(_chunk(head, index, {}, choice["finish_reason"]))
    return [*chunks, {**head, "choices": [], "usage": answer["usage"]}] if usage else chunks


def _deltas(choice: JsonObject) -> Iterator[tuple[JsonObject, JsonObject | None]]:
    """Yield the deltas of a choice, each with its log-probabilities.

    Tokens that are not visible, such as the end token, have a delta without text.
    """
    message, content = choice["message"], choice["message"].get("content") or ""
    yield {"role": "assistant", "content": ""}, None
    if message.get("reasoning_content"):
        yield {"reasoning_content": message["reasoning_content"]}, None
    entries = (choice["logprobs"] or {}).get("content") or ()
    parts = split_at(content, [entry["token"] for entry in entries]) if entries else pieces(content)
    for place, part in enumerate(parts):
        logprobs = {"content": [entries[place]], "refusal": None} if place < len(entries) else None
        yield {"content": part}, logprobs
    for place, call in enumerate(message.get("tool_calls") or ()):
        yield {"tool_calls": [{"index": place, **call}]}, None


def split_at(text: str, tokens: Sequence[str]) -> list[str]:
    """Split ``text`` into one part per token, plus a last part for the remaining text.

    A part is the token's text if ``text`` continues with it, otherwise "". The parts together are ``text``.
    """
    parts, begin = [], 0
    for token in tokens:
        fits = text.startswith(token, begin)
        parts.append(token if fits else "")
        begin += len(token) if fits else 0
    return [*parts, text[begin:]] if begin < len(text) else parts


def _chunk(
    head: JsonObject, index: int, delta: JsonObject, finish: str | None = None, logprobs: JsonObject | None = None
) -> JsonObject:
    return {**head, "choices": [{"index": index, "delta": delta, "finish_reason": finish, "logprobs": logprobs}]}


def completion_chunks(answer: JsonObject, *, usage: bool) -> list[JsonObject]:
    """Split a ``text_completion`` into one object per choice. With ``usage``, a last object holds the usage."""
    head = {key: value for key, value in answer.items() if key not in ("choices", "usage")}
    head |= {"usage": None} if usage else {}
    chunks: list[JsonObject] = [{**head, "choices": [choice]} for choice in answer["choices"]]
    return [*chunks, {**head, "choices": [], "usage": answer["usage"]}] if usage else chunks


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
    top: Sequence[Sequence[tuple[str, float]]] = completion.detail.get("top_logprobs") or [()] * len(values)
    return [
        {**_token(text, value), "top_logprobs": [_token(*entry) for entry in entries]}
        for text, value, entries in zip(texts, values, top, strict=True)
    ]


def _token(text: str, logprob: float) -> dict[str, object]:
    return {"token": text, "logprob": logprob, "bytes": list(text.encode("utf-8", "replace"))}
