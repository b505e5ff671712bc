"""Measures memory and latency of a local server that gets 1,000 requests, of which 100 are closed early.

Run: ``python -m tests.benchmarks.bench_server``. It prints one JSON object.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

import psutil

from tests.served import HELLO, MODEL, running, send

REQUESTS, DISCONNECTED, AT_ONCE = 1000, 100, 16


def main() -> None:
    """Print the memory before and after the requests, and the latency on an idle server and after the disconnects."""
    process = psutil.Process()
    with running("pocket") as server:

        def ask(seed: int, timeout: float = 60.0, tokens: int = 24) -> None:
            body = {"model": MODEL, "messages": HELLO, "max_tokens": tokens, "seed": seed}
            send(server.url, "/v1/chat/completions", json.dumps(body).encode(), timeout=timeout)

        def leave(seed: int) -> None:
            with contextlib.suppress(TimeoutError):
                ask(seed, timeout=0.05, tokens=900)

        def latency(seed: int) -> float:
            started = time.perf_counter()
            ask(seed)
            return time.perf_counter() - started

        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(ask, range(100)))
            idle = statistics.median(latency(seed) for seed in range(11))
            megabytes = [process.memory_info().rss / 2**20]
            for part in range(10):
                count = (REQUESTS - DISCONNECTED) // 10
                list(pool.map(ask, range(part * count, (part + 1) * count)))
                list(pool.map(leave, range(DISCONNECTED // 10)))
                megabytes.append(process.memory_info().rss / 2**20)
            list(pool.map(leave, range(AT_ONCE)))
            following = latency(1)
    figures = {"idle_s": idle, "after_disconnects_s": following, "megabytes": megabytes}
    print(
        json.dumps(
            {
                name: round(value, 3) if isinstance(value, float) else [round(v) for v in value]
                for name, value in figures.items()
            }
        )
    )


if __name__ == "__main__":
    main()
