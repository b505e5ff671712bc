"""A loopback server that stores each request and answers from a script, for tests of request and reply formats."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass
class Sent:
    """One request as the server received it."""

    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


@dataclass
class Answer:
    """One scripted reply. ``body`` is sent as JSON, or unchanged if it is bytes; ``after_s`` delays the reply."""

    body: Any = field(default_factory=dict)
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    after_s: float = 0.0
    cut: bool = False  # the connection is closed without a reply


class WireServer:
    """``with WireServer(answer) as server``: serves at ``server.url``; ``answer`` makes the reply to each request."""

    def __init__(self, answer: Callable[[Sent], Answer]) -> None:
        self.answer = answer
        self.sent: list[Sent] = []

    def __enter__(self) -> WireServer:
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), daemon=True)
        self._thread.start()
        if not ready.wait(10):
            raise RuntimeError("the loopback server did not start within 10 s")
        return self

    def __exit__(self, *exc: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
        self.port = runner.addresses[0][1]
        ready.set()
        await self._stop.wait()
        await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        sent = Sent(request.method, request.path, dict(request.headers), await request.read(), dict(request.query))
        self.sent.append(sent)
        answer = self.answer(sent)
        if answer.after_s:
            await asyncio.sleep(answer.after_s)
        if answer.cut and request.transport is not None:
            request.transport.abort()
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        headers = {"content-type": "application/json", **answer.headers}
        return web.Response(body=body, status=answer.status, headers=headers)
