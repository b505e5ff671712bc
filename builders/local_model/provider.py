"""A model in this process, through transformers: no key, no server, no network."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bestofn.builders.concurrency.threads import in_thread
from bestofn.builders.errors import ServiceError
from bestofn.builders.formats.inline_thinking import without_thinking
from bestofn.builders.formats.tool_calls import call
from bestofn.builders.formats.written_calls import written_calls
from bestofn.builders.local_model.engine import Ask, Drawn, LocalEngine
from bestofn.builders.local_model.seeded_sampling import Warp
from bestofn.builders.providers.in_process import InProcessProvider
from bestofn.builders.records import Completion, Request, StopReason, Usage
from bestofn.builders.sampling.limiter import RateLimits
from bestofn.builders.sampling.samples import shared_usage

_CALL = re.compile(r"<tool_call>.*?(?:</tool_call>|\Z)", re.DOTALL)
HASHED_BYTES = 64 << 20  # weights up to this size are named by their content, larger ones by size and time


class LocalTransformers(InProcessProvider):
    """Samples from ``model``: a folder, a Hub id, or ``pocket`` for the policy that is shipped.

    Requests that wait at the same time share batches of up to ``max_rows`` answers, halved when memory runs out. An
    answer depends on prompt, seed and weights alone, never on its batch (``builders.local_model.seeded_sampling``).
    ``max_answer_tokens`` bounds an answer whatever the request allows; ``template`` holds further variables of the chat
    template. ``shared_device``: processes of this machine that set it generate one at a time. Of ``sampling.extra``,
    ``top_k`` is taken. A JSON schema is not enforced.
    """

    name = "transformers"
    operational = ("device", "threads", "max_rows", "shared_device", "limits")

    def __init__(
        self,
        *,
        model: str,
        device: str = "auto",
        dtype: str = "auto",
        threads: int | None = None,
        max_rows: int = 128,
        max_answer_tokens: int | None = None,
        template: Mapping[str, Any] | None = None,
        shared_device: bool = False,
        limits: RateLimits = RateLimits(concurrency=256, retries=0),
    ) -> None:
        if max_rows < 1:
            raise ValueError(f"max_rows is {max_rows}; expected at least 1")
        self.model = model
        self.limits = limits
        self.engine = LocalEngine(
            model, device=device, dtype=dtype, threads=threads, max_rows=max_rows, shared=shared_device
        )
        self._dtype = dtype
        self._max_answer_tokens = max_answer_tokens
        self._template = dict(template or {})
        self._waiting: list[_Job] = []
        self._arrived = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None
        self._identity = ""

    @property
    def identity(self) -> str:
        """Names the weights, so that a policy trained further under the same path is another one."""
        if not self._identity:
            settings = f"{self._dtype} {self._max_answer_tokens} {sorted(self._template.items())}"
            self._identity = f"{self.name} {self.model} {fingerprint(Path(self.engine.path))} {settings}"
        return self._identity

    async def __aenter__(self) -> LocalTransformers:
        await in_thread(self.engine.load)
        self._arrived = asyncio.Event()
        self._worker = asyncio.create_task(self._work())
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
            self._worker = None
        for job in self._waiting:
            job.answers.cancel()
        self._waiting.clear()
        self.engine.unload()

    async def sample(self, request: Request, n: int) -> list[Completion]:
        """``n`` completions. Raises ``RequestError`` for a prompt that does not fit, ``ServiceError`` out of memory."""
        if self._worker is None:
            raise ServiceError(f"{self.model} is not loaded; open the provider first (async with provider)")
        started = time.perf_counter()
        sampling = request.sampling
        prompt = self.engine.encode(request.messages, request.tools, **self._template)
        room = self.engine.room(prompt, sampling.max_tokens)
        temperature = 1.0 if sampling.temperature is None else sampling.temperature
        ask = Ask(
            prompt=prompt,
            n=n,
            seed=sampling.seed,
            max_tokens=min(room, self._max_answer_tokens or room),
            stop=sampling.stop,
            warp=Warp(temperature, sampling.top_p, sampling.extra.get("top_k")),
            token_logprobs=sampling.logprobs,
        )
        drawn = await self.answers_to(ask)
        seconds = time.perf_counter() - started
        shares = shared_usage(Usage(prompt=len(prompt)), n)
        return [self._completion(request, one, ask, i, shares[i].prompt, seconds) for i, one in enumerate(drawn)]

    async def answers_to(self, ask: Ask) -> list[Drawn]:
        """The answers of ``ask``, in a batch with whatever else waits. Raises ``ServiceError`` out of memory."""
        if self._worker is None:
            raise ServiceError(f"{self.model} is not loaded; open the provider first (async with provider)")
        job = _Job(ask, asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        self._arrived.set()
        return await job.answers

    async def _work(self) -> None:
        """Draw for whoever waits, one batch after the other; what arrives meanwhile shares the next."""
        while True:
            await self._arrived.wait()
            await asyncio.sleep(0.002)  # whoever was woken with the first has asked by then
            self._arrived.clear()
            jobs = [job for job in self._next() if not job.answers.done()]
            if self._waiting:
                self._arrived.set()
            if not jobs:
                continue
            try:
                drawn = await in_thread(self.engine.generate, [job.ask for job in jobs])
            except Exception as error:  # whoever asked is told; the worker goes on for the others
                for job in jobs:
                    if not job.answers.done():
                        job.answers.set_exception(_told(error, self.model))
                continue
            for job, answers in zip(jobs, drawn, strict=True):
                if not job.answers.done():
                    job.answers.set_result(answers)

    def _next(self) -> list[_Job]:
        """Take the oldest waiting job and those of its kind, as many as fill one batch, the like-sized first."""
        if not self._waiting:
            return []
        first = self._waiting[0]
        alike = [job for job in self._waiting if job.ask.kind == first.ask.kind]
        alike[1:] = sorted(alike[1:], key=lambda job: abs(len(job.ask.prompt) - len(first.ask.prompt)))
        taken, rows = [], 0
        for job in alike:
            if taken and rows + job.ask.n > self.engine.max_rows:
                break
            taken.append(job)
            rows += job.ask.n
        chosen = {id(job) for job in taken}
        self._waiting = [job for job in self._waiting if id(job) not in chosen]
        return taken

    def _completion(
        self, request: Request, drawn: Drawn, ask: Ask, index: int, prompt_tokens: int, seconds: float
    ) -> Completion:
        thought, content = without_thinking(drawn.text)
        message: dict[str, Any] = {"role": "assistant", "content": content}
        stop: StopReason = drawn.stop_reason
        names = [str((tool.get("function") or tool).get("name")) for tool in request.tools]
        made = written_calls(content or "", names) if names and request.tool_choice != "none" else []
        if made:
            name = call_id(ask, index)
            message["tool_calls"] = [
                call(one["function"]["name"], one["function"]["arguments"], f"{name}_{place}")
                for place, one in enumerate(made)
            ]
            message["content"] = _CALL.sub("", content or "").strip() if "<tool_call>" in (content or "") else ""
            stop = "tool_calls" if stop == "stop" else stop
        return Completion(
            message=message,
            model=self.model,
            stop_reason=stop,
            reasoning=thought,
            usage=Usage(prompt=prompt_tokens, completion=drawn.tokens),
            seconds=seconds,
            logprob=drawn.logprob,
            detail={"token_logprobs": list(drawn.token_logprobs), "token_texts": list(drawn.token_texts)}
            if drawn.token_logprobs
            else {},
        )


@dataclass(eq=False)
class _Job:
    ask: Ask
    answers: asyncio.Future[list[Drawn]]


def call_id(ask: Ask, index: int) -> str:
    """A name for the calls of one answer, the same in every run."""
    return "call_" + hashlib.blake2b(repr((ask.prompt, ask.seed, index)).encode(), digest_size=6).hexdigest()


def fingerprint(folder: Path) -> str:
    """A hash of what is in a model's folder; "" for a Hub id, whose name says it."""
    if not folder.is_dir():
        return ""
    digest = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        if file.suffix in (".safetensors", ".bin", ".json", ".jinja", ".model"):
            facts = file.stat()
            small = facts.st_size <= HASHED_BYTES
            digest.update(file.name.encode())
            digest.update(file.read_bytes() if small else f"{facts.st_size} {facts.st_mtime_ns}".encode())
    return digest.hexdigest()[:16]


def _told(error: Exception, model: str) -> Exception:
    if isinstance(error, ServiceError):
        return error
    told = ServiceError(f"{model} failed while it drew: {type(error).__name__}: {error}")
    told.__cause__ = error
    return told
