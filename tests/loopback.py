"""An OpenAI-compatible loopback server for tests: real HTTP, deterministic answers, and a count of the requests.

The hash of the question and the seed decides whether the answer to a sum is correct. So two runs with the same requests
get the same answers, and a dataset of sums has passes and fails.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.server_thread import ServerThread, listening_app


class OpenAIServer(ServerThread):
    """``with OpenAIServer() as server``: serves at ``server.url``. Each reply is delayed by ``latency_s`` seconds."""

    path = "/v1"

    def __init__(self, latency_s: float = 0.0, answer: Callable[[str, int], str] | None = None) -> None:
        self.latency_s = latency_s
        self.answer = answer or sums
        self.requests = 0
        self.completions = 0
        self.bodies: list[dict[str, Any]] = []
        self.asked: Counter[str] = Counter()
        self.fail_with: list[int] = []  # HTTP statuses of the next replies
        self.refuse: Callable[[str], tuple[int, str] | None] | None = None  # question -> status and message, or None

    def words(self, data: Path | str, *more: str) -> list[str]:
        """Return the words of a build that reads the queries ``data`` and gets its answers from this server."""
        provider = ["provider=openai_chat", f"provider.base_url={self.url}", "provider.model=m"]
        return ["dataset=jsonl", f"dataset.path={data}", *provider, "sandbox=none", "tools=none", *more]

    def reset(self) -> None:
        self.requests = self.completions = 0
        self.bodies.clear()
        self.asked.clear()

    def listening(self) -> AbstractAsyncContextManager[int]:
        return listening_app(web.post("/v1/chat/completions", self._chat))

    async def _chat(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.requests += 1
        self.bodies.append(body)
        if self.fail_with:
            return web.json_response({"error": {"message": "as scripted"}}, status=self.fail_with.pop(0))
        refusal = self.refuse(body["messages"][-1]["content"]) if self.refuse else None
        if refusal:
            return web.json_response({"error": {"message": refusal[1]}}, status=refusal[0])
        count = int(body.get("n") or 1)
        self.completions += count
        self.asked[json.dumps(body["messages"], sort_keys=True)] += count
        await asyncio.sleep(self.latency_s)
        question = body["messages"][-1]["content"]
        seed = int(body.get("seed") or 0)
        return web.json_response(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "created": 1,
                "model": body["model"],
                "choices": [
                    {
                        "index": index,
                        "finish_reason": "stop",
                        "logprobs": None,
                        "message": {"role": "assistant", "content": self.answer(question, seed + index)},
                    }
                    for index in range(count)
                ],
                "usage": {"prompt_tokens": 20, "completion_tokens": 10 * count, "total_tokens": 20 + 10 * count},
            }
        )


def sums(question: str, seed: int) -> str:
    """Return an answer to "What is a + b?". About half of the samples are wrong by one."""
    numbers = [int(number) for number in re.findall(r"\d+", question)]
    slip = hashlib.sha256(f"{question}|{seed}".encode()).digest()[0] % 2
    return f"We add the numbers. Draw {seed % 97}: the answer is \\boxed{{{sum(numbers) + slip}}}."


def write_sums(file: Path, count: int, twice: int = 1) -> Path:
    """Write ``count`` queries "What is i + i?" to ``file``, with ``twice=2`` "What is i + 2i?". Return ``file``."""
    rows = (
        {"id": f"q{i}", "question": f"What is {i} + {twice * i}?", "answer": str(i + twice * i)} for i in range(count)
    )
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file
