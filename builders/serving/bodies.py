"""Defines the request bodies of OpenAI's Chat Completions, Completions and Responses. Used by ``app``."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from bestofn.builders.errors import RequestError
from bestofn.builders.formats.tool_calls import call_from_responses, from_responses
from bestofn.builders.records import JsonObject, Message, Request, Sampling, Tool, ToolChoice

MAX_SAMPLES = 256


class Body(BaseModel):
    """The fields of all requests. Unknown fields are ignored, because new clients of OpenAI may send new fields."""

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
        """The stop strings as a tuple."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())

    def sampling(self, max_tokens: int | None, logprobs: bool = False) -> Sampling:
        """Return the sampling settings. The seed is random if the request has none."""
        extra = {"top_k": self.top_k} if self.top_k else {}
        seed = self.seed if self.seed is not None else uuid.uuid4().int & 0x7FFFFFFF
        temperature = 1.0 if self.temperature is None else self.temperature
        return Sampling(temperature, self.top_p, max_tokens, self.stops, seed, logprobs=logprobs, extra=extra)


class BodyWithTools(Body):
    """The fields of requests that can declare tools."""

    tools: list[dict[str, Any]] | None = None
    tool_choice: Any = None

    @property
    def used_tool_choice(self) -> ToolChoice:
        """The tool choice for the model: ``none`` if the request has ``none``, otherwise ``auto``.

        A tool call cannot be forced. A request to force one is treated as ``auto``.
        """
        return "none" if self.tool_choice == "none" else "auto"


class ChatBody(BodyWithTools):
    """The body of a request to ``/v1/chat/completions``."""

    messages: list[dict[str, Any]] = Field(min_length=1)
    n: int = Field(1, ge=1, le=MAX_SAMPLES)
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    logprobs: bool | None = None

    def request(self) -> Request:
        """Return the body as a ``Request``. Raises ``RequestError`` if the prompt is empty or a message has no role."""
        sampling = self.sampling(self.max_completion_tokens or self.max_tokens, bool(self.logprobs))
        messages, tools = _checked_messages(self.messages), tuple(self.tools or ())
        return Request(messages, tools, sampling, tool_choice=self.used_tool_choice)


class CompletionBody(Body):
    """The body of a request to ``/v1/completions``."""

    prompt: str | list[str]
    n: int = Field(1, ge=1, le=MAX_SAMPLES)
    max_tokens: int | None = Field(16, ge=1)
    logprobs: int | None = None
    echo: bool = False
    keep_special_tokens: bool = False  # not in OpenAI's API; for clients that parse special tokens, for example Harmony


class ResponsesBody(BodyWithTools):
    """The body of a request to ``/v1/responses``."""

    input: str | list[dict[str, Any]]
    instructions: str | None = None
    max_output_tokens: int | None = Field(None, ge=1)

    def request(self) -> Request:
        """Return the body as a ``Request``. Raises ``RequestError`` if the prompt is empty or a message has no role."""
        messages: list[JsonObject] = []
        if self.instructions:
            messages.append({"role": "system", "content": self.instructions})
        if isinstance(self.input, str):
            messages.append({"role": "user", "content": self.input})
        else:
            messages += _messages_of_items(self.input)
        tools: list[Tool] = [from_responses(tool) for tool in self.tools or () if tool.get("type") == "function"]
        sampling = self.sampling(self.max_output_tokens)
        return Request(_checked_messages(messages), tuple(tools), sampling, tool_choice=self.used_tool_choice)


def _checked_messages(messages: Sequence[JsonObject]) -> tuple[Message, ...]:
    for place, message in enumerate(messages):
        if not isinstance(message.get("role"), str):
            raise RequestError(f"messages[{place}] has no role; expected system, user, assistant or tool", status=400)
    if not any(message.get("content") or message.get("tool_calls") for message in messages):
        raise RequestError("the prompt is empty; expected a message with content", status=400)
    return tuple(dict(message) for message in messages)


def _messages_of_items(items: Sequence[JsonObject]) -> list[JsonObject]:
    """Convert the input items of a Responses request to chat messages.

    Consecutive tool calls become one assistant message.
    """
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
    return [*messages]
