"""A mock Chat Completions server for measurements. It prints its port.

    python -m bestofn.scripts.speed_server LATENCY_S [tail]

With ``tail``, 1 % of the requests wait 2 s longer and 5 % wait five times as long. The hash of the prompt selects these
requests, so every client gets the same delays. ``GET /stats`` returns the counts, and ``POST /reset`` sets them to
zero.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import time
from collections import Counter

from aiohttp import web

TEXT = "We look at the question, take the number in it, and count on by one. " * 8 + "The answer is \\boxed{%d}."


class Server:
    """Answers every request with a fixed text, and counts the requests."""

    def __init__(self, latency_s: float, tail: bool) -> None:
        self.latency_s, self.tail = latency_s, tail
        self.forget()

    def forget(self) -> None:
        """Set all counts to zero."""
        self.requests = self.completions = self.in_flight = self.peak = 0
        self.first = self.last = 0.0  # when the first request arrived, and when the last reply was sent
        self.asked: Counter[bytes] = Counter()

    async def chat(self, request: web.Request) -> web.Response:
        """Answer one Chat Completions request."""
        body = await request.json()
        count = int(body.get("n") or 1)
        key = hashlib.md5(json.dumps(body["messages"]).encode()).digest()
        self.requests += 1
        self.first = self.first or time.time()
        self.completions += count
        self.asked[key] += count
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            await asyncio.sleep(self.seconds(key))
        finally:
            self.in_flight -= 1
            self.last = time.time()
        choices = [
            {"index": index, "finish_reason": "stop", "message": {"role": "assistant", "content": TEXT % index}}
            for index in range(count)
        ]
        usage = {"prompt_tokens": 20, "completion_tokens": 150 * count, "total_tokens": 20 + 150 * count}
        return web.json_response({"id": "c", "model": body["model"], "choices": choices, "usage": usage})

    def seconds(self, key: bytes) -> float:
        """Return the delay of a request in seconds. ``key`` is the hash of its prompt."""
        place = int.from_bytes(key[:4], "big") / 2**32 if self.tail else 1.0
        return self.latency_s + 2.0 if place < 0.01 else self.latency_s * (5.0 if place < 0.06 else 1.0)

    async def stats(self, request: web.Request) -> web.Response:
        """Return the counts since the last reset."""
        counts = {name: getattr(self, name) for name in ("requests", "completions", "peak", "first", "last")}
        return web.json_response(counts | {"prompts": len(self.asked), "most": max(self.asked.values(), default=0)})

    async def reset(self, request: web.Request) -> web.Response:
        """Set all counts to zero."""
        self.forget()
        return web.json_response({})


async def serve(server: Server) -> None:
    """Serve until the process is killed; prints the port first."""
    app = web.Application(client_max_size=64 << 20)
    app.add_routes(
        [
            web.post("/v1/chat/completions", server.chat),
            web.get("/stats", server.stats),
            web.post("/reset", server.reset),
        ]
    )
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=4096).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


def main() -> None:
    """Start the server with the latency that the command line gives."""
    served = Server(float(sys.argv[1]), "tail" in sys.argv[2:])
    asyncio.run(serve(served))


if __name__ == "__main__":
    main()
