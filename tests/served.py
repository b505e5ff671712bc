"""Serves a model with random weights on a real port of this process."""

from __future__ import annotations

import http.client
import io
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai
import uvicorn

from bestofn.builders.local_model.provider import LocalTransformers
from bestofn.builders.serving.app import create_app
from bestofn.builders.serving.request_log import RequestLog

MODEL = "tiny"
HELLO: Any = [{"role": "user", "content": "Say something."}]


@dataclass
class Running:
    url: str
    provider: LocalTransformers
    log: io.StringIO
    most_at_once: list[int]

    def client(self, key: str = "none", *, strict: bool = True) -> openai.OpenAI:
        return openai.OpenAI(
            base_url=f"{self.url}/v1", api_key=key, max_retries=0, timeout=60, _strict_response_validation=strict
        )

    def lines(self) -> list[dict]:
        return [json.loads(line) for line in self.log.getvalue().splitlines()]


@contextmanager
def running(folder: Path | str, key: str = "") -> Iterator[Running]:
    """Serve the model in ``folder`` inside the ``with`` block."""
    provider = LocalTransformers(model=str(folder), max_rows=8, threads=1, shared_device=True)
    log, seen = io.StringIO(), [0, 0]
    computing = provider.engine.computing

    @contextmanager
    def watched() -> Iterator[None]:
        with computing():
            seen[0] += 1
            seen[1] = max(seen[1], seen[0])
            try:
                yield
            finally:
                seen[0] -= 1

    provider.engine.computing = watched  # type: ignore[method-assign]
    with serving(create_app(provider, name=MODEL, api_key=key, log=RequestLog(log))) as url:
        yield Running(url, provider, log, seen)


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """Run ``app`` on a free port in a thread, and return its address."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    deadline = time.monotonic() + 60
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.02)
    assert server.started
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)
        listener.close()


def send(
    url: str, path: str, data: bytes | None = None, *, headers: dict[str, bytes] | None = None, timeout: float = 60
) -> tuple[int, Any]:
    """Send one request and return the status and the JSON of the reply. Without ``data``, it is a GET request."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=timeout)
    try:
        given = {"Content-Type": "application/json", **(headers or {})}
        connection.request("GET" if data is None else "POST", path, data, given)
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())
    finally:
        connection.close()
