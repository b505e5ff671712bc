"""What requests say and answers look like: OpenAI's Chat Completions, Completions and Responses."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from bestofn.builders.errors import RequestError
from bestofn.builders.records import Completion, Message, Request, Sampling, Tool

MOST_SAMPLES = 256


class Body(BaseModel):
    """Fields that nothing reads are let through, as OpenAI's clients send more with every version."""

    model_config = ConfigDict(extra="allow")

    model: str = ""
    temperature: float | None = Field(None, ge=0.0, le=10.0)
    top_p: float | None = Field(None, gt=0.0, le=1.0)
    top_k: int | None = Field(None, ge=0)
    seed: int | None = None
    stop: str | list[str] | None = None
    stream: bool = False

    @property
    def stops(self) -> tuple[str, ...]:
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())

    def sampling(self, max_tokens: int | None, logprobs: bool = False) -> Sampling:
        extra = {"top_k": self.top_k} if self.top_k else {}
        seed = self.seed if self.seed is not None else uuid.uuid4().int & 0x7FFFFFFF
        temperature = 1.0 if self.temperature is None else self.temperature
        return Sampling(temperature, self.top_p, max_tokens, self.stops, seed, logprobs=logprobs, extra=extra)


class ChatBody(Body):
    messages: list[dict[str, Any]] = Field(min_length=1)
    n: int = Field(1, ge=1, le=MOST_SAMPLES)
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    logprobs: bool | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: Any = None

    def request(self) -> Request:
        sampling = self.sampling(self.max_completion_tokens or self.max_tokens, bool(self.logprobs))
        choice: dict[str, Any] = {"tool_choice": "none"} if self.tool_choice == "none" else {}
        return Request(_messages(self.messages), tuple(self.tools or ()), sampling, **choice)


class CompletionBody(Body):
    prompt: str | list[str]
    n: int = Field(1, ge=1, le=MOST_SAMPLES)
    max_tokens: int | None = Field(16, ge=1)
    logprobs: int | None = None
    echo: bool = False
    keep_special_tokens: bool = False  # ours: for who parses the raw text (Harmony)


class ResponsesBody(Body):
    input: str | list[dict[str, Any]]
    instructions: str | None = None
    max_output_tokens: int | None = Field(None, ge=1)
    tools: list[dict[str, Any]] | None = None
    tool_choice: Any = None

    def request(self) -> Request:
        from bestofn.builders.formats.tool_calls import from_responses

        messages: list[dict[str, Any]] = []
        if self.instructions:
            messages.append({"role": "system", "content": self.instructions})
        messages += [{"role": "user", "content": self.input}] if isinstance(self.input, str) else _input(self.input)
        tools: list[Tool] = [from_responses(tool) for tool in self.tools or () if tool.get("type") == "function"]
        choice: dict[str, Any] = {"tool_choice": "none"} if self.tool_choice == "none" else {}
        return Request(_messages(messages), tuple(tools), self.sampling(self.max_output_tokens), **choice)


def chat_answer(model: str, drawn: Sequence[Completion], logprobs: bool) -> dict[str, Any]:
    """A ``chat.completion``."""
    return {
        "id": _name("chatcmpl"),
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [
            {
                "index": index,
                "message": chat_message(one),
                "finish_reason": one.stop_reason,
                "logprobs": {"content": _logprobs(one), "refusal": None} if logprobs else None,
            }
            for index, one in enumerate(drawn)
        ],
        "usage": _usage(drawn),
    }


def chat_message(one: Completion) -> dict[str, Any]:
    message = {**one.message, "refusal": None}
    if one.reasoning:
        message["reasoning_content"] = one.reasoning
    if message.get("tool_calls") and not message.get("content"):
        message["content"] = None
    return message


def chat_chunks(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The same answer as ``chat.completion.chunk``s: role, text in pieces, calls, finish, usage."""
    head = {key: answer[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    chunks: list[dict[str, Any]] = []

    def chunk(index: int, delta: Mapping[str, Any], finish: str | None = None) -> None:
        choice = {"index": index, "delta": dict(delta), "finish_reason": finish, "logprobs": None}
        chunks.append({**head, "choices": [choice]})

    for choice in answer["choices"]:
        index, message = choice["index"], choice["message"]
        chunk(index, {"role": "assistant", "content": ""})
        for piece in pieces(message.get("content") or ""):
            chunk(index, {"content": piece})
        for place, call in enumerate(message.get("tool_calls") or ()):
            chunk(index, {"tool_calls": [{"index": place, **call}]})
        chunk(index, {}, choice["finish_reason"])
    chunks.append({**head, "choices": [], "usage": answer["usage"]})
    return chunks


def pieces(text: str, size: int = 24) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def completion_answer(model: str, choices: Sequence[Mapping[str, Any]], usage: Mapping[str, int]) -> dict[str, Any]:
    """A ``text_completion``."""
    return {
        "id": _name("cmpl"),
        "object": "text_completion",
        "created": int(time.time()),
        "model": model,
        "choices": [{"index": index, **choice} for index, choice in enumerate(choices)],
        "usage": dict(usage),
    }


def responses_answer(model: str, one: Completion) -> dict[str, Any]:
    """A ``response`` with its output items."""
    from bestofn.builders.formats.tool_calls import call_to_responses

    output: list[dict[str, Any]] = []
    if one.reasoning:
        summary = [{"type": "summary_text", "text": one.reasoning}]
        output.append({"id": _name("rs"), "type": "reasoning", "summary": summary})
    if one.text:
        content = [{"type": "output_text", "text": one.text, "annotations": []}]
        output.append(
            {"id": _name("msg"), "type": "message", "role": "assistant", "status": "completed", "content": content}
        )
    for call in one.message.get("tool_calls") or ():
        output.append({"id": _name("fc"), "status": "completed", **call_to_responses(call)})
    cut = one.stop_reason == "length"
    return {
        "id": _name("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "error": None,
        "model": model,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": one.usage.prompt,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": one.usage.completion,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": one.usage.prompt + one.usage.completion,
        },
    }


def responses_events(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The same answer as the events of a streamed response."""
    started = {**answer, "status": "in_progress", "output": [], "usage": None}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": started}]
    for place, item in enumerate(answer["output"]):
        events.append({"type": "response.output_item.added", "output_index": place, "item": item})
        if item["type"] == "message":
            where = {"output_index": place, "content_index": 0, "item_id": item["id"]}
            text = item["content"][0]["text"]
            events += [
                {"type": "response.output_text.delta", **where, "delta": piece, "logprobs": []}
                for piece in pieces(text)
            ]
            events.append({"type": "response.output_text.done", **where, "text": text, "logprobs": []})
        events.append({"type": "response.output_item.done", "output_index": place, "item": item})
    events.append({"type": f"response.{answer['status']}", "response": dict(answer)})
    return [{"sequence_number": number, **event} for number, event in enumerate(events)]


def _messages(given: Sequence[Mapping[str, Any]]) -> tuple[Message, ...]:
    for place, message in enumerate(given):
        if not isinstance(message.get("role"), str):
            raise RequestError(f"messages[{place}] has no role; expected system, user, assistant or tool", status=400)
    if not any(message.get("content") or message.get("tool_calls") for message in given):
        raise RequestError("the prompt is empty; expected a message with content", status=400)
    return tuple(dict(message) for message in given)


def _input(items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    from bestofn.builders.formats.tool_calls import call_from_responses

    messages: list[dict[str, Any]] = []
    for item in items:
        kind = item.get("type", "message")
        if kind == "message":
            messages.append({"role": item.get("role"), "content": item.get("content")})
        elif kind == "function_call":
            call = call_from_responses(item)
            if messages and messages[-1].get("tool_calls"):
                messages[-1]["tool_calls"].append(call)
            else:
                messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        elif kind == "function_call_output":
            messages.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")})
    return messages


def _logprobs(one: Completion) -> list[dict[str, Any]]:
    values, texts = one.detail.get("token_logprobs") or (), one.detail.get("token_texts") or ()
    return [
        {"token": text, "logprob": value, "bytes": list(text.encode("utf-8", "replace")), "top_logprobs": []}
        for text, value in zip(texts, values, strict=True)
    ]


def _usage(drawn: Sequence[Completion]) -> dict[str, int]:
    prompt = sum(one.usage.prompt for one in drawn)
    completion = sum(one.usage.completion for one in drawn)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _name(kind: str) -> str:
    return f"{kind}-{uuid.uuid4().hex[:24]}"
