"""``bestofn benchmark speed``: measures whole builds and a bare HTTP client in turn, on the same mock server.

Each program runs in a new process. The bare client (``python -m bestofn.scripts.benchmark_speed PORT PROMPTS N
CONCURRENCY``) sends the same requests and discards the replies. The ratio of a build to the bare client can be compared
between machines.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bestofn.builders.config.arguments import Arguments
from bestofn.builders.errors import ConfigError, MachineError

Figures = dict[str, float]


def speed_benchmark(arguments: Arguments) -> str:
    """Measure builds with the given settings.

    Return the figures as text; if ``json`` is set, also write them to this file.
    """
    prompts, n, rounds = (arguments.number(key) for key in ("prompts", "n", "rounds"))
    lines, measured = [f"{prompts:,} prompts × {n}, math verification; medians of {rounds} rounds"], {}
    with server(tail=False, latency_s=float(arguments.text("latency") or 0)) as port:
        for concurrency in _concurrencies(arguments.text("concurrency") or ""):
            runs = [
                (_bare(port, prompts, n, concurrency), _build(port, prompts, n, concurrency)) for _ in range(rounds)
            ]
            measured[concurrency] = _medians(runs, prompts * n)
            lines += _lines(concurrency, measured[concurrency])
    if out := arguments.text("json"):
        from bestofn.builders.run.manifest import write_text

        write_text(Path(out), json.dumps(measured, indent=2) + "\n")
    return "\n".join(lines)


def _concurrencies(text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise ConfigError(f"concurrency is {text!r}; expected whole numbers, for example concurrency=64,256.") from None


def _medians(runs: Sequence[tuple[Figures, Figures]], candidates: int) -> Figures:
    """Return the medians over all rounds. For the ratios and the CPU time per candidate, also return the minimum."""
    bare, build = ({key: statistics.median(run[who][key] for run in runs) for key in runs[0][who]} for who in (0, 1))
    of_rounds = {
        "wall_ratio": [build["wall"] / bare["wall"] for bare, build in runs],
        "cpu_ratio": [build["cpu"] / bare["cpu"] for bare, build in runs],
        "cpu_ms_per_candidate": [1000 * build["cpu"] / candidates for _, build in runs],
    }
    return {
        **{key: statistics.median(values) for key, values in of_rounds.items()},
        **{f"best_{key}": min(values) for key, values in of_rounds.items()},
        **{f"bare_{key}": value for key, value in bare.items()},
        **{f"build_{key}": value for key, value in build.items()},
    }


def _lines(concurrency: int, figures: Mapping[str, float]) -> list[str]:
    ratios = "{wall_ratio:.2f} × wall time, {cpu_ratio:.1f} × CPU, {cpu_ms_per_candidate:.2f} ms CPU per candidate"
    best = {key.removeprefix("best_"): value for key, value in figures.items() if key.startswith("best_")}
    return [
        f"{concurrency:5} connections  bare client {figures['bare_wall']:6.2f} s  {figures['bare_cpu']:5.2f} s CPU",
        f"{'':17}  build       {figures['build_wall']:6.2f} s  {figures['build_cpu']:5.2f} s CPU",
        f"{'':17}  build / bare client: {ratios.format(**figures)}",
        f"{'':17}  best round of each:  {ratios.format(**best)}",
        f"{'':17}  to the first request {figures['build_start']:.2f} s, requests {figures['build_span']:.2f} s, "
        f"after the last reply {figures['build_end']:.2f} s, "
        f"after the last verdicts to the finished files {figures['build_finish']:.2f} s, "
        f"peak memory {figures['build_mb']:.0f} MB",
    ]


def _build(port: int, prompts: int, n: int, concurrency: int) -> Figures:
    """Run a build in a new process and return its figures. Raises ``MachineError`` if the build fails."""
    with tempfile.TemporaryDirectory(prefix="bestofn-speed-") as folder:
        figures = _run(["bestofn.scripts.main", *build_words(Path(folder), port, prompts, n, concurrency)], port)
        return figures | {"finish": _finish_s(Path(folder) / "run")}


def _finish_s(run: Path) -> float:
    """Return the seconds from the last verdicts of ``run`` to its manifest, the file that a run writes last."""
    verified = max(file.stat().st_mtime for file in (run / "cache").glob("*-verify-*.arrow"))
    return (run / "manifest.json").stat().st_mtime - verified


def build_words(folder: Path, port: int, prompts: int, n: int, concurrency: int) -> list[str]:
    """Write a dataset of additions to ``folder``. Return the words of the build command that uses it."""
    data = folder / "sums.jsonl"
    questions = ({"id": f"q{i}", "question": f"What is {i} + 1?", "answer": str(i + 1)} for i in range(prompts))
    data.write_text("".join(json.dumps(question) + "\n" for question in questions))
    settings = {
        "dataset.path": data,
        "provider.base_url": f"http://127.0.0.1:{port}/v1",
        "provider.model": "mock-model",
        "provider.limits.concurrency": concurrency,
        "n": n,
        "out": folder / "run",
    }
    words = ["build", "dataset=jsonl", "provider=openai_chat", "verifier=math", "sandbox=none", "tools=none"]
    return [*words, *(f"{key}={value}" for key, value in settings.items())]


def _bare(port: int, prompts: int, n: int, concurrency: int) -> Figures:
    return _run(["bestofn.scripts.benchmark_speed", *map(str, (port, prompts, n, concurrency))], port)


def _run(words: Sequence[str], port: int) -> Figures:
    """Run a module in a new process. Return its times in seconds and its peak memory, including its child processes."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/reset", data=b""):
        started = time.time()
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}  # as after pip install
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen([sys.executable, "-m", *words], stdout=log, stderr=log, env=env)
        _, status, used = os.wait4(process.pid, 0)
        ended = time.time()
        if status:
            log.seek(0)
            output = log.read().decode("utf-8", "replace")[-2_000:]
            raise MachineError(f"{words[0]} ended with exit code {os.waitstatus_to_exitcode(status)}:\n{output}")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/stats") as reply:
        stats = json.loads(reply.read())
    return {
        "wall": ended - started,
        "cpu": used.ru_utime + used.ru_stime,
        "start": stats["first"] - started,
        "span": stats["last"] - stats["first"],
        "end": ended - stats["last"],
        "mb": used.ru_maxrss / 1024,
    }


@contextlib.contextmanager
def server(tail: bool, latency_s: float = 0.2) -> Iterator[int]:
    """Start a mock server in a new process, and yield its port."""
    words = [sys.executable, "-m", "bestofn.scripts.speed_server", str(latency_s), *(["tail"] if tail else [])]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.terminate()


async def bare(port: int, prompts: int, n: int, concurrency: int) -> Figures:
    """Send the requests of the build with one HTTP session and ``concurrency`` workers. The replies are discarded."""
    import aiohttp

    numbers = iter(range(prompts))
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=concurrency)) as session:

        async def work() -> None:
            for number in numbers:
                messages = [{"role": "user", "content": f"Question {number}: what is {number}+1?"}]
                body = {"model": "mock-model", "messages": messages, "n": n, "temperature": 0.7}
                async with session.post(f"http://127.0.0.1:{port}/v1/chat/completions", json=body) as response:
                    await response.json()

        before = resource.getrusage(resource.RUSAGE_SELF)
        started = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(concurrency)))
        return facts(prompts * n, time.perf_counter() - started, before)


def facts(completions: int, wall: float, before: resource.struct_rusage) -> Figures:
    """Return the rate of completions, the times in seconds since ``before``, and this process's peak memory in MB."""
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    rss = after.ru_maxrss / 1024
    return {"compl_s": round(completions / wall, 1), "wall": round(wall, 2), "cpu": round(cpu, 2), "rss_mb": round(rss)}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(bare(*map(int, sys.argv[1:5])))))
