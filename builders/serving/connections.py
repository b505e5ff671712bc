"""Code that all routes share: the bearer key, errors in OpenAI's format, and clients that have disconnected."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from bestofn.builders.errors import ProviderError
from bestofn.builders.records import JsonObject
from bestofn.builders.redaction.urls import names_this_machine
from bestofn.builders.serving.request_log import RequestLog

T = TypeVar("T")
CLIENT_GONE = 499  # the status in the request log of a request whose client has closed the connection
PUBLIC = ("/health",)  # paths that need no key


class RequireKey:
    """Middleware that refuses requests without the bearer key ``api_key``, and records when each request arrived.

    If no key is set, only requests whose host is a name of this machine are answered: a web page of another origin
    knows no key, but could otherwise use the server through a host name that resolves to this machine.
    """

    def __init__(self, app: ASGIApp, api_key: str) -> None:
        self._app = app
        self._expected = [f"Bearer {api_key}".encode(coding, "replace") for coding in ("utf-8", "latin-1")]
        self._required = bool(api_key)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope.setdefault("state", {})["started"] = time.perf_counter()
            headers = dict(scope["headers"])
            if not self._required and not names_this_machine(headers.get(b"host", b"").decode("latin-1")):
                refusal = error_response(403, "use the address http://127.0.0.1, or set api_key=…", "invalid_host")
                await refusal(scope, receive, send)
                return
            given = headers.get(b"authorization", b"")
            known = any(hmac.compare_digest(given, expected) for expected in self._expected)
            if self._required and scope["path"] not in PUBLIC and not known:
                refusal = error_response(401, "the bearer key is missing or wrong", "invalid_api_key")
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)


async def unless_disconnected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of ``work``.

    If the client closes the connection first, cancel ``work`` and raise ``ClientGone``.
    """
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
    finally:
        task.cancel()
        gone.cancel()
    raise ClientGone


class ClientGone(Exception):
    """The client closed the connection before the answer was complete."""


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def handle_errors(server: FastAPI, requests: RequestLog) -> None:
    """Install handlers that answer every error in the format of OpenAI's API and log it in ``requests``."""

    def answered(request: Request, status: int, message: str, code: str) -> Response:
        requests.write(request.url.path, status, request.state.started, error=message)
        return error_response(status, message, code)

    @server.exception_handler(ProviderError)
    async def provider_failed(request: Request, error: ProviderError) -> Response:
        status = error.status or 500
        code = {400: "invalid_request", 404: "model_not_found", 503: "unavailable"}.get(status, "server_error")
        return answered(request, status, str(error), "oom" if error.cause == "oom" else code)

    @server.exception_handler(RequestValidationError)
    async def invalid_body(request: Request, error: RequestValidationError) -> Response:
        return answered(request, 400, _problem(error.errors()[0]), "invalid_request")

    @server.exception_handler(HTTPException)
    async def no_route(request: Request, error: HTTPException) -> Response:
        message = f"{request.method} {request.url.path}: {error.detail}"
        return answered(request, error.status_code, message, "invalid_request")

    @server.exception_handler(ClientGone)
    async def client_gone(request: Request, error: ClientGone) -> Response:
        return answered(request, CLIENT_GONE, "the client closed the connection", "client_closed_request")

    @server.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> Response:
        return answered(request, 500, f"{type(error).__name__}: {error}", "server_error")


def _problem(error: JsonObject) -> str:
    """Return the message for ``error``, which pydantic or FastAPI found in the body of a request."""
    if error["type"] == "json_invalid":
        return f"the body is not valid JSON (character {error['loc'][-1]}: {error['ctx']['error']})"
    field = ".".join(str(part) for part in error["loc"] if part != "body")
    if not field and error["type"] == "missing":
        return "the body is empty; expected a JSON object"
    text = str(error["msg"]).removeprefix("Value error, ")
    found = "" if error["type"] == "value_error" else f"; found {error.get('input')!a:.200}"
    return f"{field}: {text}{found}".removeprefix(": ")


def error_response(status: int, message: str, code: str) -> JSONResponse:
    """Build an error response in the format of OpenAI's API."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    text = message.encode("utf-8", "replace").decode()
    return JSONResponse({"error": {"message": text, "type": kind, "param": None, "code": code}}, status)
