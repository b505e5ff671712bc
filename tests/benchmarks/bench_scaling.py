"""Measures verification with one and with two workers: mathematics that needs SymPy, and programs in a sandbox.

    python -m tests.benchmarks.bench_scaling [rounds=3] [sandbox=local|docker]

Both numbers of workers are measured in turn in one process. Prints verdicts per second and the ratio (target: 1.8 on
two free processors). Every verdict must be a pass, so that only completed work is timed.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any

from bestofn.builders.records import Candidate, CodeTests, Query, Reference, Verdict
from bestofn.sandbox.docker_sandbox import DockerSandbox
from bestofn.sandbox.local_sandbox import LocalSandbox
from bestofn.sandbox.workers import ProcessPool
from bestofn.verifiers.code_verifier import CodeVerifier
from bestofn.verifiers.math import MathVerifier

MATH, CODE, AT_ONCE = 120, 240, 16
Verify = Callable[[Query, Candidate], Awaitable[Verdict]]


def main(arguments: Sequence[str]) -> int:
    options = dict(word.split("=", 1) for word in arguments)
    asyncio.run(measure(int(options.get("rounds", 3)), options.get("sandbox", "local")))
    return 0


async def measure(rounds: int, sandbox: str) -> None:
    async with AsyncExitStack() as stack:
        math: dict[int, Verify] = {}
        code: dict[int, Verify] = {}
        kind: Any = {"local": LocalSandbox, "docker": DockerSandbox}[sandbox]
        for count in (1, 2):
            workers = await stack.enter_async_context(ProcessPool(count))
            math[count] = MathVerifier(workers, symbolic_s=20).verify
            box = await stack.enter_async_context(kind(workers=count))
            code[count] = CodeVerifier(box).verify
        await compare("math by SymPy", math, integral, MATH, rounds)
        await compare(f"code, {sandbox}", code, program, CODE, rounds)


def integral(number: int) -> tuple[Query, Candidate]:
    """Return a problem: the integral of x² eˣ from 0 to h, which is (h² − 2h + 2) eʰ − 2."""
    high = number + 2
    answer = rf"\int_0^{{{high}}} x^2 e^{{x}} dx"
    reference = rf"({high * high - 2 * high + 2}) e^{{{high}}} - 2"
    asked = ({"role": "user", "content": "Integrate."},)
    query = Query(f"m{number}", "math", asked, reference=Reference(answer=reference))
    return query, Candidate(0, ({"role": "assistant", "content": rf"\boxed{{{answer}}}"},))


def program(number: int) -> tuple[Query, Candidate]:
    """Return a program of about 30 ms. ``number`` makes it unique, because equal programs run only once."""
    source = f"```python\ndef f(n):\n    total = {number}\n    for i in range(n):\n        total += i & 3\n    return total\n```"
    tests = CodeTests("function", "python", ({"args": [300_000], "expected": 450_000 + number},), entry_point="f")
    query = Query(f"c{number}", "code", ({"role": "user", "content": "Count."},), reference=Reference(tests=tests))
    return query, Candidate(0, ({"role": "assistant", "content": source},))


async def compare(
    title: str, ways: dict[int, Verify], made: Callable[[int], tuple[Query, Candidate]], size: int, rounds: int
) -> None:
    """Measure each of ``ways`` (number of workers -> function) in turn, and print the figures.

    Each round has new programs, because equal programs run only once.
    """
    rates: dict[int, list[float]] = {count: [] for count in ways}
    for number in range(rounds + 1):
        for count, verify in ways.items():
            turn = asyncio.Semaphore(AT_ONCE)
            work = [made(number * size + place) for place in range(size)]

            async def one(query: Query, candidate: Candidate, verify: Verify = verify, turn: Any = turn) -> Verdict:
                async with turn:
                    return await verify(query, candidate)

            begun = time.perf_counter()
            verdicts = await asyncio.gather(*(one(query, candidate) for query, candidate in work))
            if wrong := [verdict for verdict in verdicts if verdict.outcome != "pass"]:
                raise SystemExit(f"{title}: {len(wrong)} verdicts are not pass; the first: {wrong[0]}")
            if number:  # the first starts the workers
                rates[count].append(len(work) / (time.perf_counter() - begun))
    one_worker, two = (statistics.median(rates[count]) for count in (1, 2))
    print(f"{title:<16} 1 worker {one_worker:7.1f}/s   2 workers {two:7.1f}/s   × {two / one_worker:.2f}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
