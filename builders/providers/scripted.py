"""A provider that answers from a script, for tests, demonstrations and measurements. It uses no network.

Selected with ``provider=scripted``; called by the sampler (``builders.sampling``).
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bestofn.builders.providers.in_process import InProcessProvider
from bestofn.builders.records import Completion, JsonObject, Message, Request, StopReason, Usage, content_text
from bestofn.builders.sampling.limiter import RateLimits

Line = str | Message | Completion | Exception
REMEMBERED = 1_000  # maximum length of ``requests``


class Scripted(InProcessProvider):
    """A provider that answers from the script ``lines``.

    The script has one of three forms: a function (request, seed) -> line, a list of lines, or a mapping from texts to
    lines. In a mapping, the key is the last user message of the request or a part of it. If there are several lines, a
    hash of the request and the seed selects one of them. So the same request with the same seed always gets the same
    line.

    A line is a text, a message, a ``Completion``, or an exception to raise. Each call waits ``latency_s`` seconds. The
    first calls raise the exceptions in ``faults``, one per call.
    """

    name = "scripted"
    operational = ("latency_s", "limits")

    def __init__(
        self,
        lines: Any = ("The answer is \\boxed{42}.",),
        *,
        model: str = "scripted",
        latency_s: float = 0.0,
        faults: Sequence[Exception] = (),
        max_n: int = 128,
        stop_reason: StopReason = "stop",
        limits: RateLimits = RateLimits(),
    ) -> None:
        self.model = model
        self.limits = limits
        self.max_n = max_n
        self.requests: list[Request] = []  # the first ``REMEMBERED`` requests, for tests
        self._lines = lines
        self._latency_s = latency_s
        self._faults = list(faults)
        self._stop_reason: StopReason = stop_reason

    @property
    def identity(self) -> str:
        """The name of the provider, of its model, and a checksum of the lines, unless a function makes them."""
        if callable(self._lines):
            return f"{self.name} {self.model}"
        given = repr((self._lines, self._stop_reason)).encode("utf-8", "surrogatepass")
        return f"{self.name} {self.model} {hashlib.sha256(given).hexdigest()[:16]}"

    async def sample(self, request: Request, n: int) -> list[Completion]:
        """Return ``n`` completions. Their seeds are consecutive, starting with the seed of ``request``."""
        started = time.perf_counter()
        if len(self.requests) < REMEMBERED:
            self.requests.append(request)
        if self._latency_s:
            await asyncio.sleep(self._latency_s)
        if self._faults:
            raise self._faults.pop(0)
        first = request.sampling.seed or 0
        lines = [self._line(request, first + position) for position in range(n)]
        seconds = time.perf_counter() - started
        return [self._completion(request, line, seconds) for line in lines]

    def _line(self, request: Request, seed: int) -> Line:
        if isinstance(self._lines, Callable):
            return self._lines(request, seed)
        lines = self._lines
        if isinstance(lines, Mapping):
            lines = self._lines_for(_question(request), lines)
        if isinstance(lines, str | Exception | Completion | Mapping):
            return lines
        digest = hashlib.sha256(f"{[dict(message) for message in request.messages]}|{seed}".encode()).digest()
        return lines[int.from_bytes(digest[:8], "big") % len(lines)]

    def _lines_for(self, question: str, lines: JsonObject) -> Any:
        if question in lines:
            return lines[question]
        for part, answers in lines.items():
            if part in question:
                return answers
        raise KeyError(f"the script has no line for the question {question!r}; it has lines for {sorted(lines)}")

    def _completion(self, request: Request, line: Line, seconds: float) -> Completion:
        if isinstance(line, Exception):
            raise line
        if isinstance(line, Completion):
            return line
        message = {"role": "assistant", "content": line} if isinstance(line, str) else dict(line)
        prompt = sum(len(content_text(sent.get("content")).split()) for sent in request.messages)
        return Completion(
            message=message,
            model=self.model,
            stop_reason="tool_calls" if message.get("tool_calls") else self._stop_reason,
            usage=Usage(prompt=prompt, completion=len(content_text(message.get("content")).split())),
            seconds=seconds,
        )


def _question(request: Request) -> str:
    for message in reversed(request.messages):
        if message.get("role") == "user":
            return content_text(message.get("content"))
    return ""
