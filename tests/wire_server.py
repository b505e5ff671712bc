"""A loopback server that stores each request and answers from a script, for tests of request and reply formats."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.server_thread import ServerThread, listening_app


@dataclass
class Sent:
    """One request as the server received it."""

    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes
    query: Mapping[str, str] = field(default_factory=dict)
    raw_path: str = ""  # as it was sent, with its query

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


@dataclass
class Answer:
    """One scripted reply. ``body`` is sent as JSON, or unchanged if it is bytes. ``after_s`` delays the reply."""

    body: Any = field(default_factory=dict)
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    after_s: float = 0.0
    cut: bool = False  # the connection is closed without a reply


def chat_answer(text: str, choices: int = 1, model: str = "j") -> Answer:
    """Return the reply of Chat Completions in which each choice has the content ``text``."""
    message = {"role": "assistant", "content": text}
    return Answer(
        {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": model,
            "choices": [{"index": i, "message": message, "finish_reason": "stop"} for i in range(choices)],
            "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12},
        }
    )


class WireServer(ServerThread):
    """``with WireServer(answer) as server``: serves at ``server.url``.

    ``answer`` computes the reply to each request.
    """

    def __init__(self, answer: Callable[[Sent], Answer]) -> None:
        self.answer = answer
        self.sent: list[Sent] = []

    @property
    def provider(self) -> list[str]:
        """The words with which a command uses this server and the model "j"."""
        return ["provider=openai_chat", "provider.model=j", f"provider.base_url={self.url}/v1", "provider.api_key=k"]

    def listening(self) -> AbstractAsyncContextManager[int]:
        return listening_app(web.route("*", "/{path:.*}", self._handle))

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        headers, query, raw_path = dict(request.headers), dict(request.query), request.raw_path
        sent = Sent(request.method, request.path, headers, await request.read(), query, raw_path)
        self.sent.append(sent)
        answer = self.answer(sent)
        if answer.after_s:
            await asyncio.sleep(answer.after_s)
        if answer.cut and request.transport is not None:
            request.transport.abort()
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        headers = {"content-type": "application/json", **answer.headers}
        return web.Response(body=body, status=answer.status, headers=headers)
