"""Compares the time of a compiled program in the sandbox with the bare compiler and the bare program, in turn."""

from __future__ import annotations

import asyncio
import importlib
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any

from bestofn.builders.records import Program
from bestofn.sandbox.local_sandbox import LocalSandbox
from tests.benchmarks.compiled.programs import Labelled, labelled

TASKS = 5  # programs per language and round

_WITH_DESCRIPTORS = ("sh", "-c", 'exec "$@" 3>/dev/null 4</dev/null', "sh")  # which the harness of the tests uses


def print_times(rounds: int, languages: Sequence[str]) -> None:
    """Print the medians per language in seconds."""
    print(f"{'language':12} {'compile and run':>16} {'bare':>8} {'run again':>10} {'bare':>8}")
    for language in languages:
        found = asyncio.run(_measure(rounds, language))
        first, bare, again, run = (statistics.median(found[key]) for key in ("first", "bare", "again", "run"))
        print(f"{language:12} {first:16.3f} {bare:8.3f} {again:10.3f} {run:8.3f}", flush=True)


async def _measure(rounds: int, language: str) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = defaultdict(list)
    right = [one for one in labelled(language) if not one.bug]
    async with LocalSandbox(workers=1) as sandbox:
        await sandbox.run(_program(right[-1]))  # warms the box and the files of the compiler
        for number in range(rounds):
            for one in islice(right, TASKS):
                program = _program(one)
                comment = f"// round {number}\n"  # a new source, so the cache does not have it
                program = replace(program, source=f"{program.source}\n{comment}")
                for key in ("first", "again"):
                    with _timed(seconds[key]):
                        execution = await sandbox.run(program)
                    if execution.status != "ok":
                        raise RuntimeError(f"{one.id}: {execution.status} {execution.stderr[-300:]}")
                _bare(program, seconds)
    return seconds


def _program(one: Labelled) -> Program:
    return Program(one.language, one.source, tests=(one.test,), entry_point=one.entry_point)  # type: ignore[arg-type]


def _bare(program: Program, seconds: dict[str, list[float]]) -> None:
    """Compile and run the files of ``program`` without a sandbox, and add the times to ``seconds``."""
    toolchain = importlib.import_module(f"bestofn.sandbox.languages.{program.language}").TOOLCHAIN
    job: Any = {"source": program.source, "cases": list(program.tests), "calls": []}
    with tempfile.TemporaryDirectory() as folder, _timed(seconds["bare"]):
        sources = toolchain.sources(job)
        for name, text in sources.items():
            with open(f"{folder}/{name}", "w") as file:
                file.write(text)
        for command in toolchain.commands(list(sources)):
            subprocess.run(command, cwd=folder, check=True, capture_output=True)
        path = f"{folder}/{toolchain.output}"
        start = toolchain.start(path, 512) if toolchain.start else [path]
        with _timed(seconds["run"]):
            subprocess.run([*_WITH_DESCRIPTORS, *start], cwd=folder, check=True, capture_output=True)


@contextmanager
def _timed(seconds: list[float]) -> Iterator[None]:
    begun = time.perf_counter()
    yield
    seconds.append(time.perf_counter() - begun)
