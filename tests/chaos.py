"""A loopback server on which a chosen share of the requests fails, in twelve ways in which real services fail."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import threading
from collections import Counter
from typing import Any

from aiohttp import web

FAULTS = (
    "429 with retry-after",
    "429 without",
    "500",
    "503",
    "hang",
    "cut before the reply",
    "cut within the reply",
    "malformed json",
    "too few choices",
    "too many choices",
    "no choices",
    "slow bytes",
)


class ChaosServer:
    """A Chat Completions server. A ``share`` of the requests gets one of ``faults``; the others are answered normally.

    Each reply is delayed by ``latency_s`` seconds. ``requests`` counts all requests and ``met`` the faults;
    ``answered`` counts the choices that were sent completely, by question and seed.
    """

    def __init__(
        self, share: float = 0.3, faults: tuple[str, ...] = FAULTS, latency_s: float = 0.002, seed: int = 0
    ) -> None:
        self.share = share
        self.faults = faults
        self.latency_s = latency_s
        self.requests = 0
        self.met: Counter[str] = Counter()
        self.answered: Counter[tuple[str, int]] = Counter()
        self._random = random.Random(seed)

    def __enter__(self) -> ChaosServer:
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
        return f"http://127.0.0.1:{self.port}/v1"

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=64 << 20)
        app.router.add_post("/v1/chat/completions", self._chat)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
        self.port = runner.addresses[0][1]
        ready.set()
        await self._stop.wait()
        await runner.cleanup()

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests += 1
        await asyncio.sleep(self.latency_s)
        fault = self._random.choice(self.faults) if self._random.random() < self.share else ""
        if fault:
            self.met[fault] += 1
        return await self._misbehave(fault, request, body)

    async def _misbehave(self, fault: str, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        count = int(body.get("n") or 1)
        if fault.startswith(("429", "500", "503")):
            headers = {"retry-after": "0.05"} if "with retry" in fault else {}
            return web.json_response({"error": {"message": fault}}, status=int(fault[:3]), headers=headers)
        if fault == "hang":
            await asyncio.sleep(30)
        if fault == "cut before the reply":
            request.transport.abort()
            return web.Response()
        if fault == "malformed json":
            return web.Response(body=b'{"choices": [{"message": {"role": "assist', content_type="application/json")
        if fault == "no choices":
            return web.json_response({"id": "x", "model": "m", "choices": []})
        if fault == "too few choices":
            count = max(1, count - 2)
        if fault == "too many choices":
            count += 2
        reply = json.dumps(self._reply(body, count)).encode()
        if fault in ("cut within the reply", "slow bytes"):
            return await self._dribble(request, reply, cut=fault.startswith("cut"))
        self._count(body, count)
        return web.Response(body=reply, content_type="application/json")

    async def _dribble(self, request: web.Request, reply: bytes, cut: bool) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-length": str(len(reply)), "content-type": "application/json"})
        await response.prepare(request)
        half = len(reply) // 2
        await response.write(reply[:half])
        await asyncio.sleep(0.01 if cut else 30)  # longer than any client waits
        if request.transport is not None:
            request.transport.abort()
        return response

    def _reply(self, body: dict[str, Any], count: int) -> dict[str, Any]:
        question, seed = body["messages"][-1]["content"], int(body.get("seed") or 0)
        return {
            "id": "chatcmpl-1",
            "model": body["model"],
            "choices": [
                {
                    "index": index,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": answer(question, seed + index)},
                }
                for index in range(count)
            ],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5 * count},
        }

    def _count(self, body: dict[str, Any], count: int) -> None:
        question, seed = body["messages"][-1]["content"], int(body.get("seed") or 0)
        self.answered.update((question, seed + index) for index in range(count))


def answer(question: str, seed: int) -> str:
    """The only correct text for a question and a seed, so that a test detects a repeated or misplaced answer."""
    return f"{question} #{seed} {hashlib.sha256(f'{question}|{seed}'.encode()).hexdigest()[:8]}"
