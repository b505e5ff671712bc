"""The local server: serves a model of this process through OpenAI's API. Used by ``bestofn serve``.

Requests that wait at the same time are batched (``LocalTransformers``). With ``shared_device``, the processes of this
user take turns on the device: only one batch runs at a time. A streamed answer is generated completely before its first
piece is sent.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse

from bestofn.builders.errors import ProviderError
from bestofn.builders.local_model.engine import GeneratedAnswer, GenerationRequest
from bestofn.builders.local_model.provider import LocalTransformers
from bestofn.builders.local_model.seeded_sampling import TokenSampler
from bestofn.builders.records import JsonObject, Usage
from bestofn.builders.serving.answers import chat_answer, chat_chunks, completion_answer, usage_counts
from bestofn.builders.serving.bodies import ChatBody, CompletionBody, ResponsesBody
from bestofn.builders.serving.request_log import RequestLog
from bestofn.builders.serving.responses import responses_answer, responses_events


def create_app(provider: LocalTransformers, *, api_key: str = "", log: RequestLog | None = None) -> FastAPI:
    """Create the application. If ``api_key`` is set, every path except ``/health`` requires it as a bearer token."""

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with provider:
            yield

    server = FastAPI(title="bestofn", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    log = log or RequestLog()
    _require_key(server, api_key)
    _handle_errors(server, log)
    _add_information(server, provider)
    _add_generation(server, provider, log)
    return server


def _require_key(server: FastAPI, api_key: str) -> None:
    @server.middleware("http")
    async def check_key(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        header = request.headers.get("authorization", "")
        if api_key and request.url.path != "/health" and not hmac.compare_digest(header, f"Bearer {api_key}"):
            return error_response(401, "the bearer key is missing or wrong", "invalid_api_key")
        request.state.started = time.perf_counter()
        return await call_next(request)


def _handle_errors(server: FastAPI, log: RequestLog) -> None:
    @server.exception_handler(ProviderError)
    async def provider_failed(request: Request, error: ProviderError) -> Response:
        status = error.status or 500
        log.write(request.url.path, status, request.state.started, error=str(error))
        code = {400: "invalid_request", 503: "oom"}.get(status, "server_error")
        return error_response(status, str(error), code)

    @server.exception_handler(RequestValidationError)
    async def invalid_body(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"] if part != "body")
        log.write(request.url.path, 400, request.state.started, error=f"{field}: {first['msg']}")
        return error_response(400, f"{field}: {first['msg']}; found {first.get('input')!r:.200}", "invalid_request")


def _add_information(server: FastAPI, provider: LocalTransformers) -> None:
    started_at = int(time.time())

    @server.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok", "model": provider.model}

    @server.get("/v1/models")
    async def models() -> dict[str, object]:
        model = {"id": provider.model, "object": "model", "created": started_at, "owned_by": "bestofn"}
        return {"object": "list", "data": [model]}


def _add_generation(server: FastAPI, provider: LocalTransformers, log: RequestLog) -> None:
    @server.post("/v1/chat/completions")
    async def chat(body: ChatBody, request: Request) -> Response:
        completions = await provider.sample(body.request(), body.n)
        answer = chat_answer(provider.model, completions, bool(body.logprobs))
        log.write(request.url.path, 200, request.state.started, answer["usage"], n=body.n)
        return event_stream(chat_chunks(answer), done=True) if body.stream else JSONResponse(answer)

    @server.post("/v1/responses")
    async def responses(body: ResponsesBody, request: Request) -> Response:
        (completion,) = await provider.sample(body.request(), 1)
        answer = responses_answer(provider.model, completion)
        log.write(request.url.path, 200, request.state.started, answer["usage"], n=1)
        return event_stream(responses_events(answer), named=True) if body.stream else JSONResponse(answer)

    @server.post("/v1/completions")
    async def completions(body: CompletionBody, request: Request) -> Response:
        choices, usage = await complete(provider, body)
        counts = usage_counts(usage.prompt, usage.completion)
        answer = completion_answer(provider.model, choices, counts)
        log.write(request.url.path, 200, request.state.started, counts, n=body.n)
        if not body.stream:
            return JSONResponse(answer)
        return event_stream([{**answer, "choices": [choice]} for choice in answer["choices"]], done=True)


async def complete(provider: LocalTransformers, body: CompletionBody) -> tuple[list[JsonObject], Usage]:
    """Generate ``body.n`` choices per prompt. No chat template is applied. Return all choices and their total usage."""
    choices: list[JsonObject] = []
    usage = Usage()
    for text in [body.prompt] if isinstance(body.prompt, str) else body.prompt:
        request = _generation_request(provider, body, text)
        answers = await provider.generate(request)
        choices += [_choice(answer, text, body) for answer in answers]
        usage += Usage(prompt=len(request.prompt), completion=sum(answer.tokens for answer in answers))
    return choices, usage


def _generation_request(provider: LocalTransformers, body: CompletionBody, text: str) -> GenerationRequest:
    sampling = body.sampling(body.max_tokens)
    prompt = tuple(provider.engine.tokenizer(text)["input_ids"])
    temperature = 1.0 if sampling.temperature is None else sampling.temperature
    return GenerationRequest(
        prompt=prompt,
        n=body.n,
        seed=sampling.seed,
        max_tokens=provider.engine.answer_tokens(prompt, sampling.max_tokens),
        stop=sampling.stop,
        sampler=TokenSampler(temperature, sampling.top_p, sampling.extra.get("top_k")),
        token_logprobs=body.logprobs is not None,
        keep_special=body.keep_special_tokens,
    )


def _choice(answer: GeneratedAnswer, prompt: str, body: CompletionBody) -> JsonObject:
    logprobs = None
    if body.logprobs is not None:
        logprobs = {"tokens": list(answer.token_texts), "token_logprobs": list(answer.token_logprobs)}
        logprobs |= {"top_logprobs": None, "text_offset": []}
    text = prompt + answer.text if body.echo else answer.text
    return {"text": text, "finish_reason": answer.stop_reason, "logprobs": logprobs}


def error_response(status: int, message: str, code: str) -> JSONResponse:
    """Build an error response in the format of OpenAI's API."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return JSONResponse({"error": {"message": message, "type": kind, "param": None, "code": code}}, status)


def event_stream(payloads: Iterable[JsonObject], *, named: bool = False, done: bool = False) -> StreamingResponse:
    """Stream ``payloads`` as server-sent events.

    With ``named``, the name of each event is the ``type`` of its payload. With ``done``, the last event is ``[DONE]``.
    """

    def lines() -> Iterator[str]:
        for payload in payloads:
            name = f"event: {payload['type']}\n" if named else ""
            yield f"{name}data: {json.dumps(payload, ensure_ascii=False)}\n\n"
        if done:
            yield "data: [DONE]\n\n"

    return StreamingResponse(lines(), media_type="text/event-stream")
