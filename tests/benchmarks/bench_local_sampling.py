"""Compares sampling in process, sampling through the server, and plain batched ``generate``, interleaved in one run.

    python -m tests.benchmarks.bench_local_sampling [rounds]

Model, prompts, lengths and rows per batch are the same. The server runs in its own process; the official client sends
32 requests at once. Prints tokens per second and the ratio to plain ``generate``. The targets are at least 0.9 in
process and at least 0.7 through the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import openai

from bestofn.builders.local_model.engine import LocalEngine
from bestofn.builders.local_model.provider import LocalTransformers
from bestofn.builders.records import Request, Sampling
from bestofn.builders.sources.starter import Starter

QUERIES, N, ROWS, TOKENS, AT_ONCE = 64, 8, 128, 96, 32


def main(arguments: Sequence[str]) -> None:
    asyncio.run(measure(int(arguments[0]) if arguments else 3))


async def measure(rounds: int) -> None:
    import torch

    requests = [Request(query.messages, query.tools, Sampling(seed=1)) for query in list(Starter())[:QUERIES]]
    with served() as url:
        async with LocalTransformers(model="pocket", max_answer_tokens=TOKENS, max_rows=ROWS) as provider:
            client = openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
            ways: dict[str, Callable[[], Awaitable[int]]] = {
                "plain generate": lambda: plain(provider.engine, requests),
                "in process": lambda: in_process(provider, requests),
                f"server, {AT_ONCE} at once": lambda: through_server(client, requests),
            }
            rates: dict[str, list[float]] = {name: [] for name in ways}
            for number in range(rounds + 1):
                for name, way in ways.items():
                    started = time.perf_counter()
                    made = await way()
                    if number:  # the first warms up
                        rates[name].append(made / (time.perf_counter() - started))
    print(f"{QUERIES} queries × {N} answers, {rounds} rounds, {torch.get_num_threads()} threads")
    base = rates["plain generate"]
    for name, found in rates.items():
        ratio = statistics.median(a / b for a, b in zip(found, base, strict=True))
        print(f"  {name:<22} {statistics.median(found):8,.0f} tokens/s   × plain {ratio:.2f}")


async def plain(engine: LocalEngine, requests: Sequence[Request]) -> int:
    """Sample with ``generate`` of transformers, and return the number of tokens.

    Prompts are sorted by length; a batch has ``ROWS`` answers.
    """
    import torch
    from transformers import GenerationConfig

    made = 0
    prompts = sorted((engine.encode(request.messages, request.tools) for request in requests), key=len)
    for start in range(0, len(prompts), ROWS // N):
        texts = [engine.tokenizer.decode(prompt) for prompt in prompts[start : start + ROWS // N]]
        inputs = engine.tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False)
        with torch.inference_mode():
            output = engine.network.generate(
                input_ids=inputs["input_ids"],
                attention_mask=inputs["attention_mask"],
                generation_config=GenerationConfig(
                    do_sample=True,
                    num_return_sequences=N,
                    max_new_tokens=TOKENS,
                    eos_token_id=engine.ends,
                    pad_token_id=engine.pad,
                ),
            )
        made += int((output[:, inputs["input_ids"].shape[1] :] != engine.pad).sum())
    return made


async def in_process(provider: LocalTransformers, requests: Sequence[Request]) -> int:
    answers = await asyncio.gather(*(provider.sample(request, N) for request in requests))
    return sum(one.usage.completion for group in answers for one in group)


async def through_server(client: openai.AsyncOpenAI, requests: Sequence[Request]) -> int:
    turn = asyncio.Semaphore(AT_ONCE)

    async def ask(request: Request) -> int:
        messages: Any = list(request.messages)
        tools: Any = [dict(tool) for tool in request.tools] or openai.omit
        async with turn:
            reply = await client.chat.completions.create(
                model="pocket", messages=messages, tools=tools, n=N, seed=1, max_completion_tokens=TOKENS
            )
        return reply.usage.completion_tokens if reply.usage else 0

    return sum(await asyncio.gather(*(ask(request) for request in requests)))


@contextlib.contextmanager
def served() -> Iterator[str]:
    """Run ``bestofn serve`` with the embedded policy in a new process, and yield the URL of its ``/v1``."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [sys.executable, "-m", "bestofn.scripts.main", "serve", "model=pocket", f"port={port}"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                    break
            except OSError as error:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError("the server did not start") from error
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(30)


if __name__ == "__main__":
    main(sys.argv[1:])
