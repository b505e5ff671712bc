"""Measures another engine on the server of ``bestofn benchmark speed``. The scripts ``run_*.py`` call ``measure``.

This module does not import bestofn, so a script runs in an environment that has only the other engine and aiohttp.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

SERVER = Path(__file__).resolve().parents[3] / "scripts" / "speed_server.py"
MODEL, N = "mock-model", 4


@dataclass(frozen=True, slots=True)
class Work:
    """The work of an engine: to sample ``N`` completions for each prompt from the server at ``url``."""

    url: str
    prompts: Sequence[str]
    concurrency: int


def measure(name: str, install: str, run: Callable[[Work], None], requests_per_prompt: int) -> None:
    """Run an engine and print its times in seconds, its peak memory in MB and the counts of the server as JSON.

    ``run`` imports the engine. ``install`` is the command that installs it. Exits if the engine is not installed, or if
    the server did not get all requests.
    """
    parser = argparse.ArgumentParser(description=f"{name}; install it with: {install}")
    parser.add_argument("--prompts", type=int, default=2_000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds")
    given = parser.parse_args()
    prompts = [f"Question {number}: what is {number}+1?" for number in range(given.prompts)]
    words = [sys.executable, "-P", str(SERVER), str(given.latency)]  # -P: the folder has a module named inspect
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server, tempfile.TemporaryDirectory() as folder:
        assert server.stdout is not None
        try:
            port = server.stdout.readline().strip()
            if not port:
                raise SystemExit(f"the server did not start; it needs aiohttp: {install}")
            url = f"http://127.0.0.1:{port}"
            with chdir(folder):
                figures = _used(lambda: run(Work(f"{url}/v1", prompts, given.concurrency)), name, install)
            with urllib.request.urlopen(f"{url}/stats") as reply:
                stats = json.loads(reply.read())
        finally:
            server.terminate()
    print(json.dumps({"name": name, **figures, "requests": stats["requests"], "completions": stats["completions"]}))
    if stats["requests"] < given.prompts * requests_per_prompt:
        raise SystemExit(
            f"the server got {stats['requests']:,} requests; expected {given.prompts * requests_per_prompt:,}"
        )


def _used(run: Callable[[], None], name: str, install: str) -> dict[str, float]:
    """Run ``run``. Return the wall time, the CPU time with child processes, and the peak memory of this process.

    Exits with the command ``install`` in the message if the engine ``name`` cannot be imported.
    """
    before, started = _cpu(), time.perf_counter()
    try:
        run()
    except ImportError as error:
        raise SystemExit(
            f"{name} is not installed ({error}). Install it in a separate environment: {install}"
        ) from error
    wall = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"wall": round(wall, 1), "cpu": round(_cpu() - before, 1), "mb": round(peak)}


def _cpu() -> float:
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
