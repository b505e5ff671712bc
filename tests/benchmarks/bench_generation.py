"""Compares the generation engine with a bare aiohttp client, on the same mock server, in turn.

    python tests/benchmarks/bench_generation.py [--prompts 2000] [--rounds 2] [--only native,single,tail]

The server is ``scripts/speed_server.py``. The bare client is ``../shared/bench/bare_client.py`` next to the project if
it exists, otherwise the same loop in this file. Prints completions per second, CPU seconds and peak memory of both, and
the engine's rate as a share of the bare client's. On a shared machine only the shares are meaningful.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bestofn.scripts.benchmark_speed import bare, facts, server

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "bench" / "bare_client.py"
N = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", default="native,single,tail")
    parser.add_argument("--engine", nargs=5, metavar=("PORT", "PROMPTS", "CONCURRENCY", "MAX_N", "WAITING"))
    parser.add_argument("--bare", nargs=4, metavar=("PORT", "PROMPTS", "N", "CONCURRENCY"))
    given = parser.parse_args()
    if given.engine:
        print(json.dumps(engine(*map(int, given.engine))))
    elif given.bare:
        print(json.dumps(asyncio.run(bare(*map(int, given.bare)))))
    else:
        compare(given.prompts, given.rounds, given.only.split(","))


def compare(prompts: int, rounds: int, kinds: list[str]) -> None:
    where = "../shared/bench/bare_client.py" if SHARED.exists() else "this file (../shared is not there)"
    print(f"{prompts:,} prompts × {N}, {rounds} interleaved rounds; bare client: {where}")
    for kind in kinds:
        for concurrency in (64,) if kind == "tail" else (64, 256):
            measured: dict[str, list[dict[str, Any]]] = {"bare": [], "engine": []}
            with server(tail=kind == "tail") as port:
                for _ in range(rounds):
                    for who in measured:
                        measured[who].append(one(who, port, prompts, concurrency, native=kind != "single"))
            report(kind, concurrency, measured)


def one(who: str, port: int, prompts: int, concurrency: int, native: bool) -> dict[str, Any]:
    """Run one client in a new process, and return the figures that it prints."""
    asked, n = (prompts, N) if native else (prompts * N, 1)
    if who == "engine":
        words = [__file__, "--engine", port, prompts, concurrency, N if native else 1, 1024]
    elif SHARED.exists():
        words = [SHARED, "aiohttp", port, asked, n, concurrency]
    else:
        words = [__file__, "--bare", port, asked, n, concurrency]
    done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def report(kind: str, concurrency: int, measured: dict[str, list[dict[str, Any]]]) -> None:
    """Print the means over the rounds, and the rate of the engine as a share of the bare client's rate."""

    def mean(who: str, what: str) -> float:
        return sum(run[what] for run in measured[who]) / len(measured[who])

    share = mean("engine", "compl_s") / mean("bare", "compl_s")
    for who in measured:
        print(
            f"{kind:7} {concurrency:4} {who:7} {mean(who, 'compl_s'):8,.0f} completions/s  "
            f"{mean(who, 'cpu'):5.2f} s CPU  {mean(who, 'rss_mb'):4.0f} MB"
            + (f"  {share:6.1%} of bare" if who == "engine" else "")
        )


def engine(port: int, prompts: int, concurrency: int, max_n: int, waiting: int) -> dict[str, Any]:
    """Run ``asked`` in the event loop that a build uses, and return its figures."""
    sys.path.insert(0, str(ROOT))
    from bestofn.builders.concurrency.event_loop import Loop

    with Loop() as loop:
        return loop.run(asked(port, prompts, concurrency, max_n, waiting))


async def asked(port: int, prompts: int, concurrency: int, max_n: int, waiting: int) -> dict[str, Any]:
    """Sample N completions for each of ``prompts`` prompts with journal, rate limits and budget. Return the figures.

    ``waiting`` queries are in flight at a time. The CPU time excludes the imports.
    """
    from bestofn.builders.providers.openai_chat import OpenAIChat
    from bestofn.builders.records import Request, Sampling
    from bestofn.builders.sampling.cost import Ledger
    from bestofn.builders.sampling.journal import Journal
    from bestofn.builders.sampling.limiter import RateLimits
    from bestofn.builders.sampling.sampler import sampler

    with tempfile.TemporaryDirectory() as folder:
        journal, ledger = Journal(Path(folder) / "journal.sqlite"), Ledger()
        url = f"http://127.0.0.1:{port}/v1"
        limits = RateLimits(concurrency=concurrency)
        provider = OpenAIChat(model="mock-model", base_url=url, limits=limits, max_n=max_n)
        draws = sampler(provider, journal, ledger)
        numbers = iter(range(prompts))
        sampling = Sampling(temperature=0.7)

        async def work() -> None:
            for number in numbers:
                text = f"Question {number}: what is {number}+1?"
                await draws.draw(Request(({"role": "user", "content": text},), sampling=sampling), range(N))

        async with journal, provider, draws:
            before = resource.getrusage(resource.RUSAGE_SELF)
            started = time.perf_counter()
            await asyncio.gather(*(work() for _ in range(waiting)))
            wall = time.perf_counter() - started
    return facts(prompts * N, wall, before)


if __name__ == "__main__":
    main()
