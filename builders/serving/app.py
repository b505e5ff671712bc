"""The local server: serves a model of this process through OpenAI's API. Used by ``bestofn serve``.

Requests that wait at the same time are computed in one batch (``LocalTransformers``). With ``shared_device``, the
processes of this user take turns on the device: only one batch runs at a time. A streamed answer is generated
completely before its first piece is sent. If a client closes its connection, the computation of its answer ends.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from bestofn.builders.errors import RequestError
from bestofn.builders.local_model.chat_template import check_effort
from bestofn.builders.local_model.provider import LocalTransformers
from bestofn.builders.records import JsonObject
from bestofn.builders.serving.answers import (
    chat_answer,
    chat_chunks,
    completion_answer,
    completion_chunks,
    usage_counts,
)
from bestofn.builders.serving.bodies import Body, ChatBody, CompletionBody, ResponsesBody
from bestofn.builders.serving.completions import complete
from bestofn.builders.serving.connections import RequireKey, handle_errors, unless_disconnected
from bestofn.builders.serving.request_log import RequestLog
from bestofn.builders.serving.responses import responses_answer, responses_events


def create_app(
    provider: LocalTransformers, *, name: str = "", api_key: str = "", log: RequestLog | None = None
) -> FastAPI:
    """Create the application. If ``api_key`` is set, every path except ``/health`` requires it as a bearer token.

    Clients request the model as ``name``, by default ``provider.model``.
    """

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with provider:
            await provider.opened()
            yield

    log = log or RequestLog()
    server = bare_app(lifespan, api_key, log)
    add_information(server, [name or provider.model], lambda: provider.unanswered)
    _add_generation(server, provider, name or provider.model, log)
    return server


def bare_app(lifespan: object, api_key: str, log: RequestLog) -> FastAPI:
    """Create an application without routes, which answers errors in the format of OpenAI's API."""
    server = FastAPI(title="bestofn", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)  # type: ignore[arg-type]
    server.add_middleware(RequireKey, api_key=api_key)
    handle_errors(server, log)
    return server


def add_information(server: FastAPI, names: list[str], unanswered: Callable[[], int]) -> None:
    """Add the routes that describe the served models ``names``. ``unanswered`` returns the number of open requests."""
    started_at = int(time.time())

    def described(name: str) -> dict[str, object]:
        return {"id": name, "object": "model", "created": started_at, "owned_by": "bestofn"}

    @server.get("/health")
    async def health() -> dict[str, object]:
        return {"status": "ok", "model": ", ".join(names), "unanswered": unanswered()}

    @server.get("/v1/models")
    async def models() -> dict[str, object]:
        return {"object": "list", "data": [described(name) for name in names]}

    @server.get("/v1/models/{name:path}")
    async def model(name: str) -> dict[str, object]:
        check_model(name, names)
        return described(name)


def check_model(name: str, names: list[str]) -> None:
    """Raise ``RequestError`` with the status 404 if no model is served under ``name``."""
    if name not in names:
        raise RequestError(f"the model {name} is not served here; expected {' or '.join(names)}", status=404)


def _add_generation(server: FastAPI, provider: LocalTransformers, name: str, log: RequestLog) -> None:
    @server.post("/v1/chat/completions")
    async def chat(body: ChatBody, request: Request) -> Response:
        check_model(body.model, [name])
        _check_effort(body, provider)
        completions = await unless_disconnected(request, provider.sample(body.request(), body.n))
        answer = chat_answer(name, completions, body)
        log.write(request.url.path, 200, request.state.started, answer["usage"], n=body.n)
        if not body.stream:
            return JSONResponse(answer)
        return event_stream(chat_chunks(answer, usage=body.wants_usage), done=True)

    @server.post("/v1/responses")
    async def responses(body: ResponsesBody, request: Request) -> Response:
        check_model(body.model, [name])
        _check_effort(body, provider)
        (completion,) = await unless_disconnected(request, provider.sample(body.request(), 1))
        answer = responses_answer(name, completion, body)
        log.write(request.url.path, 200, request.state.started, answer["usage"], n=1)
        return event_stream(responses_events(answer), named=True) if body.stream else JSONResponse(answer)

    @server.post("/v1/completions")
    async def completions(body: CompletionBody, request: Request) -> Response:
        check_model(body.model, [name])
        choices, usage = await unless_disconnected(request, complete(provider, body))
        answer = completion_answer(name, choices, usage_counts(usage.prompt, usage.completion))
        log.write(request.url.path, 200, request.state.started, answer["usage"], n=body.n)
        if not body.stream:
            return JSONResponse(answer)
        return event_stream(completion_chunks(answer, usage=body.wants_usage), done=True)


def _check_effort(body: Body, provider: LocalTransformers) -> None:
    engine = provider.engine
    check_effort(body.effort, engine.model, engine.tokenizer.chat_template, harmony=engine.speaks_harmony)


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
