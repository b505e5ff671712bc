"""Defines the request bodies of OpenAI's Chat Completions, Completions and Responses. Used by ``app``.

If this server does not support a field that can change the answers, it refuses the request and names the field.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from bestofn.builders.errors import RequestError
from bestofn.builders.formats.tool_calls import from_responses
from bestofn.builders.records import JsonObject, Message, Request, Sampling, Tool, ToolChoice
from bestofn.builders.serving.messages import checked_messages, checked_tools, messages_of_items, tools_of_choice

MAX_SAMPLES = 256
MAX_TOP_LOGPROBS = 20
IGNORED = {
    *("user", "metadata", "store", "service_tier", "safety_identifier", "prediction", "logprobs_mode"),
    *("prompt_cache_key", "prompt_cache_retention", "request_id", "priority"),
}
"""Fields that are accepted and ignored, because they do not change the answers."""
NEUTRAL: Mapping[str, tuple[object, ...]] = {
    "background": (False,),
    "best_of": (1,),
    "include": ([],),
    "modalities": (["text"],),
    "min_tokens": (0,),
    "ignore_eos": (False,),
    "repetition_penalty": (1,),
    "skip_special_tokens": (True,),
    "suffix": ("",),
    "top_logprobs": (0,),
    "truncate": (False,),
    "truncation": ("disabled",),
    "truncation_direction": ("right", "Right"),
}
"""Unsupported fields, with the values that have no effect and are accepted. Null is also accepted."""


Effort = Literal["none", "minimal", "low", "medium", "high"]


class StrictBody(BaseModel):
    """A request body that rejects unknown fields, except those that do not change the answer."""

    model_config = ConfigDict(extra="allow")

    @model_validator(mode="before")
    @classmethod
    def _is_unicode(cls, value: object) -> object:
        if isinstance(value, bytes):  # FastAPI parses the body only if its content type is JSON
            raise ValueError("the body is not read as JSON; expected the header content-type: application/json")
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("the body contains half of a surrogate pair, which is not valid Unicode") from None
        return value

    @model_validator(mode="after")
    def _is_honoured(self) -> StrictBody:
        for name, value in (self.model_extra or {}).items():
            if value is not None and name not in IGNORED and value not in NEUTRAL.get(name, ()):
                raise ValueError(f"this server does not support {name}={json.dumps(value):.80}; remove this field")
        return self


def _set_effort(effort: Effort | None) -> str | None:
    return None if effort == "none" else effort


def _one_if_null(value: object) -> object:
    return 1 if value is None else value


class Body(StrictBody):
    """The fields of all requests to a language model."""

    model: str
    temperature: float | None = Field(None, ge=0.0, le=10.0)
    top_p: float | None = Field(None, gt=0.0, le=1.0)
    top_k: int | None = Field(None, ge=0)
    min_p: float | None = Field(None, ge=0.0, le=1.0)
    seed: int | None = None
    stop: str | list[str] | None = None
    stream: bool | None = False
    stream_options: dict[str, Any] | None = None
    frequency_penalty: float | None = Field(None, ge=-2.0, le=2.0)
    presence_penalty: float | None = Field(None, ge=-2.0, le=2.0)
    logit_bias: dict[int, Annotated[float, Field(ge=-100, le=100)]] | None = None

    @field_validator("stop")
    @classmethod
    def _has_text(cls, value: str | list[str] | None) -> str | list[str] | None:
        if value == "" or (isinstance(value, list) and "" in value):
            raise ValueError("a stop string is empty; expected at least one character")
        return value

    @property
    def stops(self) -> tuple[str, ...]:
        """The stop strings as a tuple."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())

    @property
    def wants_usage(self) -> bool:
        """Whether the last chunk of a stream must hold the usage."""
        return bool((self.stream_options or {}).get("include_usage"))

    @property
    def effort(self) -> str | None:
        """The reasoning effort; None if the request has none."""
        return None

    def sampling(self, max_tokens: int | None, logprobs: bool = False, top_logprobs: int = 0) -> Sampling:
        """Return the sampling settings. The seed is random if the request has none."""
        extra: dict[str, object] = {
            "top_k": self.top_k,
            "min_p": self.min_p,
            "logit_bias": self.logit_bias,
            "frequency_penalty": self.frequency_penalty,
            "presence_penalty": self.presence_penalty,
            "top_logprobs": top_logprobs,
        }
        seed = self.seed if self.seed is not None else uuid.uuid4().int & 0x7FFFFFFF
        temperature = 1.0 if self.temperature is None else self.temperature
        used = {name: value for name, value in extra.items() if value}
        return Sampling(
            temperature, self.top_p, max_tokens, self.stops, seed, effort=self.effort, logprobs=logprobs, extra=used
        )


class BodyWithTools(Body):
    """The fields of requests that can declare tools."""

    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = True

    def tools_and_choice(self, tools: Sequence[Tool]) -> tuple[tuple[Tool, ...], ToolChoice]:
        """Return the tools that the model may call, and whether it must call one.

        If the tool choice names tools, only these are returned. Raises ``RequestError`` for an unsupported tool choice.
        """
        return tools_of_choice(checked_tools(tools), self.tool_choice)


class ChatBody(BodyWithTools):
    """The body of a request to ``/v1/chat/completions``."""

    messages: list[dict[str, Any]] = Field(min_length=1)
    n: Annotated[int, BeforeValidator(_one_if_null), Field(ge=1, le=MAX_SAMPLES)] = 1
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    logprobs: bool | None = None
    top_logprobs: int | None = Field(None, ge=0, le=MAX_TOP_LOGPROBS)
    response_format: dict[str, Any] | None = None
    reasoning_effort: Effort | None = None

    @property
    def effort(self) -> str | None:
        """The reasoning effort; None if the request has none."""
        return _set_effort(self.reasoning_effort)

    @model_validator(mode="after")
    def _top_needs_logprobs(self) -> ChatBody:
        if self.top_logprobs and not self.logprobs:
            raise ValueError("top_logprobs is set without logprobs; expected logprobs=true")
        return self

    def request(self) -> Request:
        """Return the body as a ``Request``. Raises ``RequestError`` if a field is not supported."""
        limit = self.max_completion_tokens or self.max_tokens
        sampling = self.sampling(limit, bool(self.logprobs), self.top_logprobs or 0)
        tools, choice = self.tools_and_choice(self.tools or ())
        schema = schema_of(self.response_format, "json_schema")
        return Request(checked_messages(self.messages), tools, sampling, schema, choice)


class CompletionBody(Body):
    """The body of a request to ``/v1/completions``. A prompt is a text or a list of token ids."""

    prompt: str | list[int] | list[str] | list[list[int]]
    n: Annotated[int, BeforeValidator(_one_if_null), Field(ge=1, le=MAX_SAMPLES)] = 1
    max_tokens: int | None = Field(16, ge=0)
    logprobs: int | None = Field(None, ge=0, le=MAX_TOP_LOGPROBS)
    echo: bool = False
    keep_special_tokens: bool = False  # not in OpenAI's API; for clients that parse special tokens, for example Harmony

    @model_validator(mode="after")
    def _writes_something(self) -> CompletionBody:
        if self.prompt == []:
            raise ValueError("prompt is an empty list; expected at least one prompt")
        if self.max_tokens == 0 and not self.echo:
            raise ValueError("max_tokens is 0 without echo; expected at least 1")
        return self

    @property
    def prompts(self) -> list[str | list[int]]:
        """The prompts: texts, or lists of token ids."""
        if isinstance(self.prompt, str):
            return [self.prompt]
        if self.prompt and isinstance(self.prompt[0], int):
            return [[token for token in self.prompt if isinstance(token, int)]]
        return [prompt for prompt in self.prompt if not isinstance(prompt, int)]


class Reasoning(StrictBody):
    """The field ``reasoning`` of a Responses request."""

    effort: Effort | None = None


class ResponsesBody(BodyWithTools):
    """The body of a request to ``/v1/responses``."""

    input: str | list[dict[str, Any]]
    instructions: str | None = None
    max_output_tokens: int | None = Field(None, ge=1)
    text: dict[str, Any] | None = None
    reasoning: Reasoning | None = None

    @property
    def effort(self) -> str | None:
        """The reasoning effort; None if the request has none."""
        return _set_effort(self.reasoning.effort if self.reasoning else None)

    def request(self) -> Request:
        """Return the body as a ``Request``. Raises ``RequestError`` if a field is not supported."""
        messages: list[Message] = []
        if self.instructions:
            messages.append({"role": "system", "content": self.instructions})
        if isinstance(self.input, str):
            messages.append({"role": "user", "content": self.input})
        else:
            messages += messages_of_items(self.input)
        tools, choice = self.tools_and_choice([_function_tool(tool) for tool in self.tools or ()])
        schema = schema_of((self.text or {}).get("format"), "")
        return Request(checked_messages(messages), tools, self.sampling(self.max_output_tokens), schema, choice)


def _function_tool(tool: JsonObject) -> JsonObject:
    """Convert a function tool of a Responses request to the Chat Completions format.

    Other tools are returned unchanged.
    """
    return from_responses(tool) if tool.get("type") == "function" and "name" in tool else tool


def schema_of(form: object, key: Literal["json_schema", ""]) -> JsonObject | None:
    """Return the JSON Schema of a response format; None if the format has none.

    ``key`` is the field of the format that holds name and schema; "" if the format itself holds them. Raises
    ``RequestError`` if the format is not valid.
    """
    kind = form.get("type") if isinstance(form, Mapping) else form
    if kind in (None, "text"):
        return None
    if kind == "json_object":
        return {"type": "object"}
    holder = form.get(key) if key and isinstance(form, Mapping) else form
    schema = holder.get("schema") if isinstance(holder, Mapping) else None
    if kind != "json_schema" or not isinstance(schema, Mapping):
        raise RequestError(
            f"the response format is {json.dumps(form):.200}; expected the type text, json_object, or json_schema with "
            "a schema",
            status=400,
        )
    return schema


def parallel(body: BodyWithTools, message: Message) -> Message:
    """Return ``message``; if the request forbids parallel calls, keep only the first tool call."""
    calls = message.get("tool_calls") or ()
    if body.parallel_tool_calls is False and len(calls) > 1:
        return {**message, "tool_calls": list(calls[:1])}
    return message
