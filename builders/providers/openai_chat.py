"""OpenAI's Chat Completions, and every server that speaks it: vLLM, SGLang, llama.cpp, Ollama's /v1, LiteLLM …"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

from builders.errors import ServiceError
from builders.limits import RateLimits
from builders.providers.http_transport import HttpTransport, api_key, parsed
from builders.providers.inline_thinking import without_thinking
from builders.providers.reply import Reply, shared_usage
from builders.records import Completion, Message, Request, StopReason, Usage

OPENAI_URL = "https://api.openai.com/v1"
STOP: Mapping[str, StopReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}
OWN_KEYS = ("detail", "reasoning")  # what we lay beside a message; not part of the service's shape


class OpenAIChat:
    """Native ``n``: one request brings up to ``max_n`` answers. A server that brings fewer is asked for the rest.

    ``base_url`` None: ``OPENAI_BASE_URL``, else OpenAI's own, which alone needs a key. ``max_tokens_field`` None:
    ``max_completion_tokens`` for OpenAI, ``max_tokens`` for the others. ``free``: the server costs nothing, as far as
    the budget is concerned; None: so if it runs on this machine. ``raw_log``: a file for all that goes over the wire,
    keys left out.
    """

    name = "openai_chat"
    operational = ("api_key", "limits", "raw_log", "free", "max_n")

    def __init__(
        self,
        *,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        api_key_variable: str = "OPENAI_API_KEY",
        max_n: int = 128,
        max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None,
        headers: Mapping[str, str] | None = None,
        limits: RateLimits = RateLimits(),
        free: bool | None = None,
        raw_log: str | None = None,
    ) -> None:
        if max_n < 1:
            raise ValueError(f"max_n is {max_n}; expected at least 1")
        self.model = model
        self.base_url = (base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL).rstrip("/")
        self.max_n = max_n
        self.limits = limits
        self.free = is_local(self.base_url) if free is None else free
        self._api_key = api_key
        self._variable = api_key_variable
        self._max_tokens_field = max_tokens_field or (
            "max_completion_tokens" if self.base_url == OPENAI_URL else "max_tokens"
        )
        self._headers = dict(headers or {})
        self._raw_log = raw_log

    @property
    def identity(self) -> str:
        return f"{self.name} {self.base_url} {self.model}"

    async def __aenter__(self) -> OpenAIChat:
        key = api_key(self._api_key, self._variable, needed=self.base_url == OPENAI_URL, where=self.base_url)
        headers = {**({"Authorization": f"Bearer {key}"} if key else {}), **self._headers}
        self._http = HttpTransport(self.base_url, headers, self.limits, secret=key, raw_log=self._raw_log)
        await self._http.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._http.__aexit__(*exc)

    async def sample(self, request: Request, n: int) -> list[Completion]:
        return self.read(await self.ask(request, n))

    async def ask(self, request: Request, n: int) -> Reply:
        return await self._http.post("/chat/completions", self.body(request, n))

    def body(self, request: Request, n: int) -> dict[str, Any]:
        """The JSON body of one request for ``n`` answers."""
        sampling = request.sampling
        body: dict[str, Any] = {"model": self.model, "messages": [_sent(message) for message in request.messages]}
        given = {
            "n": n if n > 1 else None,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            self._max_tokens_field: sampling.max_tokens,
            "stop": list(sampling.stop) or None,
            "seed": sampling.seed,
            "reasoning_effort": sampling.effort,
            "logprobs": sampling.logprobs or None,
            "tools": [dict(tool) for tool in request.tools] or None,
            "tool_choice": request.tool_choice if request.tools and request.tool_choice != "auto" else None,
        }
        body.update({key: value for key, value in given.items() if value is not None})
        if request.schema is not None:
            schema = {"name": "answer", "schema": dict(request.schema), "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return body | dict(sampling.extra)

    def read(self, reply: Reply) -> list[Completion]:
        value = parsed(reply)
        choices = value.get("choices")
        if not isinstance(choices, list) or not choices:
            raise ServiceError(f"{self.base_url} gave no choice: {reply.body[:200]!r}")
        try:
            shares = shared_usage(_usage(value.get("usage") or {}), len(choices))
            return [
                self._completion(choice, value, share, reply) for choice, share in zip(choices, shares, strict=True)
            ]
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ServiceError(
                f"{self.base_url} gave a reply that is no chat completion ({type(error).__name__}: {error}): "
                f"{reply.body[:200]!r}"
            ) from error

    def _completion(
        self, choice: Mapping[str, Any], value: Mapping[str, Any], share: Usage, reply: Reply
    ) -> Completion:
        said = choice["message"]
        thought, content = without_thinking(said.get("content"))
        message: dict[str, Any] = {"role": "assistant", "content": content}
        stop = STOP.get(choice.get("finish_reason") or "stop", "stop")
        if said.get("tool_calls"):
            message["tool_calls"] = [_call(call) for call in said["tool_calls"]]
            stop = "tool_calls" if stop == "stop" else stop
        if said.get("refusal"):
            message["content"] = content or said["refusal"]
            stop = "refusal"
        return Completion(
            message=message,
            model=value.get("model") or self.model,
            stop_reason=stop,
            reasoning=said.get("reasoning_content") or _text(said.get("reasoning")) or thought,
            usage=share,
            seconds=reply.seconds,
            logprob=_logprob(choice.get("logprobs")),
            request_id=reply.request_id or str(value.get("id") or ""),
        )


def is_local(url: str) -> bool:
    """Whether ``url`` names this machine."""
    from urllib.parse import urlsplit

    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1", "0.0.0.0") or host.startswith("127.")


def _sent(message: Message) -> dict[str, Any]:
    return {key: value for key, value in message.items() if key not in OWN_KEYS}


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    return {
        "id": call.get("id") or "",
        "type": "function",
        "function": {"name": function["name"], "arguments": function.get("arguments") or "{}"},
    }


def _usage(usage: Mapping[str, Any]) -> Usage:
    prompt = usage.get("prompt_tokens_details") or {}
    completion = usage.get("completion_tokens_details") or {}
    return Usage(
        prompt=usage.get("prompt_tokens") or 0,
        completion=usage.get("completion_tokens") or 0,
        cached=prompt.get("cached_tokens") or 0,
        cache_write=prompt.get("cache_write_tokens") or 0,
        reasoning=completion.get("reasoning_tokens") or 0,
    )


def _logprob(logprobs: Mapping[str, Any] | None) -> float | None:
    tokens = (logprobs or {}).get("content")
    return sum(token["logprob"] for token in tokens) if tokens else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
