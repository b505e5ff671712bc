"""The local server: a model in this process behind OpenAI's API.

What waits at the same time is drawn in shared batches (``LocalTransformers``), one batch on the device at a time, for
all processes of this user. Answers are drawn whole; a stream sends the finished answer in pieces.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse

from bestofn.builders.errors import ProviderError
from bestofn.builders.local_model.engine import Ask
from bestofn.builders.local_model.provider import LocalTransformers
from bestofn.builders.local_model.seeded_sampling import Warp
from bestofn.builders.records import Usage
from bestofn.builders.serving import wire
from bestofn.builders.serving.request_log import RequestLog


def app(provider: LocalTransformers, *, api_key: str = "", log: RequestLog | None = None) -> FastAPI:
    """The application. With ``api_key``, every path but ``/health`` wants it as a bearer token."""
    log = log or RequestLog()
    started_at = int(time.time())

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with provider:
            yield

    server = FastAPI(title="bestofn", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)

    @server.middleware("http")
    async def guard(request: Request, go_on: Any) -> Response:
        given = request.headers.get("authorization", "")
        if api_key and request.url.path != "/health" and not hmac.compare_digest(given, f"Bearer {api_key}"):
            return problem(401, "the bearer key is missing or wrong", "invalid_api_key")
        request.state.started = time.perf_counter()
        return await go_on(request)

    @server.exception_handler(ProviderError)
    async def refused(request: Request, error: ProviderError) -> Response:
        status = error.status or 500
        log.write(request.url.path, status, request.state.started, error=str(error))
        code = {400: "invalid_request", 503: "oom"}.get(status, "server_error")
        return problem(status, str(error), code)

    @server.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part != "body")
        log.write(request.url.path, 400, request.state.started, error=f"{where}: {first['msg']}")
        return problem(400, f"{where}: {first['msg']}; found {first.get('input')!r:.200}", "invalid_request")

    @server.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok", "model": provider.model}

    @server.get("/v1/models")
    async def models() -> dict[str, Any]:
        one = {"id": provider.model, "object": "model", "created": started_at, "owned_by": "bestofn"}
        return {"object": "list", "data": [one]}

    @server.post("/v1/chat/completions")
    async def chat(body: wire.ChatBody, request: Request) -> Response:
        drawn = await provider.sample(body.request(), body.n)
        answer = wire.chat_answer(provider.model, drawn, bool(body.logprobs))
        log.write(request.url.path, 200, request.state.started, answer["usage"], n=body.n)
        return events(wire.chat_chunks(answer), done=True) if body.stream else JSONResponse(answer)

    @server.post("/v1/responses")
    async def responses(body: wire.ResponsesBody, request: Request) -> Response:
        (drawn,) = await provider.sample(body.request(), 1)
        answer = wire.responses_answer(provider.model, drawn)
        log.write(request.url.path, 200, request.state.started, answer["usage"], n=1)
        return events(wire.responses_events(answer), named=True) if body.stream else JSONResponse(answer)

    @server.post("/v1/completions")
    async def completions(body: wire.CompletionBody, request: Request) -> Response:
        choices, usage = await complete(provider, body)
        counts = {
            "prompt_tokens": usage.prompt,
            "completion_tokens": usage.completion,
            "total_tokens": usage.prompt + usage.completion,
        }
        answer = wire.completion_answer(provider.model, choices, counts)
        log.write(request.url.path, 200, request.state.started, counts, n=body.n)
        if not body.stream:
            return JSONResponse(answer)
        return events([{**answer, "choices": [choice]} for choice in answer["choices"]], done=True)

    return server


async def complete(provider: LocalTransformers, body: wire.CompletionBody) -> tuple[list[dict[str, Any]], Usage]:
    """The choices for each prompt as it stands, no chat template laid over it, and the tokens they took."""
    prompts = [body.prompt] if isinstance(body.prompt, str) else body.prompt
    sampling = body.sampling(body.max_tokens)
    temperature = 1.0 if sampling.temperature is None else sampling.temperature
    choices: list[dict[str, Any]] = []
    read = made = 0
    for text in prompts:
        prompt = tuple(provider.engine.tokenizer(text)["input_ids"])
        ask = Ask(
            prompt=prompt,
            n=body.n,
            seed=sampling.seed,
            max_tokens=provider.engine.room(prompt, sampling.max_tokens),
            stop=sampling.stop,
            warp=Warp(temperature, sampling.top_p, sampling.extra.get("top_k")),
            token_logprobs=body.logprobs is not None,
            keep_special=body.keep_special_tokens,
        )
        read += len(prompt)
        for one in await provider.answers_to(ask):
            made += one.tokens
            logprobs = None
            if body.logprobs is not None:
                logprobs = {"tokens": list(one.token_texts), "token_logprobs": list(one.token_logprobs)}
                logprobs |= {"top_logprobs": None, "text_offset": []}
            shown = text + one.text if body.echo else one.text
            choices.append({"text": shown, "finish_reason": one.stop_reason, "logprobs": logprobs})
    return choices, Usage(prompt=read, completion=made)


def problem(status: int, message: str, code: str) -> JSONResponse:
    """An error in OpenAI's shape."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return JSONResponse({"error": {"message": message, "type": kind, "param": None, "code": code}}, status)


def events(payloads: Iterable[Mapping[str, Any]], *, named: bool = False, done: bool = False) -> StreamingResponse:
    """Server-sent events; ``named`` gives each its type as the event's name, ``done`` ends with ``[DONE]``."""

    def lines() -> Iterable[str]:
        for payload in payloads:
            name = f"event: {payload['type']}\n" if named else ""
            yield f"{name}data: {json.dumps(payload, ensure_ascii=False)}\n\n"
        if done:
            yield "data: [DONE]\n\n"

    return StreamingResponse(lines(), media_type="text/event-stream")
