"""Measures memory and rows per second of the commands on a million candidates: build, push, report, inspect, analyze.

    python tests/benchmarks/bench_million.py [--rows 100000,1000000] [--out DIR]
    python tests/benchmarks/bench_million.py --rows 20000,40000 --stages

The answers are scripted, so that no model is measured. Each command runs in its own process. The program prints the
command's peak memory (``ru_maxrss``, main process), wall seconds, CPU seconds and rows per second. Memory must
not grow with the rows, and the rate of a command must not fall. ``--stages`` runs one build in this process, one shard
at a time, and prints the CPU time of each stage.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
N = 4
WORDS = (
    "first",
    "then",
    "so",
    "because",
    "the",
    "sum",
    "of",
    "both",
    "numbers",
    "is",
    "what",
    "we",
    "look",
    "for",
    "add",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="100000,1000000")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--stages", action="store_true")
    given = parser.parse_args()
    folder = given.out or Path(tempfile.mkdtemp(prefix="million-"))
    folder.mkdir(parents=True, exist_ok=True)
    for rows in map(int, given.rows.split(",")):
        data, out = write_sums(folder / f"{rows}.jsonl", rows // N), folder / str(rows)
        if given.stages:
            print_stages(choices(data, out), out, rows)
            shutil.rmtree(out)
            continue
        for words in (
            ["build", *choices(data, out)],
            ["push", str(out), "dry_run=true", "hub.repo=someone/something"],
            ["report", str(out)],
            ["inspect", str(out)],
            ["analyze", str(out)],
        ):
            seconds, cpu, peak = used(words, folder / "log.txt")
            print(
                f"{rows:9,} rows  {words[0]:8} {peak:5.0f} MB peak  {seconds:7.1f} s  {cpu:7.1f} s CPU  "
                f"{rows / seconds:9,.0f} rows/s",
                flush=True,
            )
        disk = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
        print(f"{rows:9,} rows  {disk / 2**20:,.0f} MB on disk, {disk / rows:,.0f} bytes per row", flush=True)
        shutil.rmtree(out)
    if not given.out:
        shutil.rmtree(folder)


def choices(data: Path, out: Path) -> list[str]:
    """Return the overrides of the build."""
    return [
        "dataset=jsonl",
        f"dataset.path={data}",
        "provider=scripted",
        f"provider.lines={json.dumps(lines(), ensure_ascii=True)}",
        "sandbox=none",
        "tools=none",
        f"n={N}",
        f"out={out}",
    ]


def print_stages(words: list[str], out: Path, rows: int) -> None:
    """Print the CPU time of each part of a build, one shard after the other."""
    from bestofn.builders.config.composition import compose
    from bestofn.builders.executors.local_executor import LocalExecutor
    from bestofn.builders.run import finish, part_writer

    spent: Counter[str] = Counter()

    def timed_as(owner: Any, name: str, label: Callable[..., str]) -> Any:
        function = getattr(owner, name)

        def timed(*given: Any, **named: Any) -> Any:
            began = time.process_time()
            try:
                return function(*given, **named)
            finally:
                spent[label(*given)] += time.process_time() - began

        return mock.patch.object(owner, name, timed)

    with (
        timed_as(part_writer, "apply_stage", lambda dataset, stage, *rest: stage.name),
        timed_as(part_writer.parquet_files, "write_tables", lambda *given: "part"),
        timed_as(finish, "write_views", lambda *given: "views"),
    ):
        began = time.process_time()
        LocalExecutor(shards_in_flight=1).run(compose(words), out)
        whole = time.process_time() - began
    spent["rest"] = whole - spent.total()
    for name, seconds in {**spent, "all": whole}.items():
        print(f"{rows:9,} rows  {name:8} {1000 * seconds / rows:6.3f} ms CPU per row  {rows / seconds:9,.0f} rows/s")


def lines() -> list[str]:
    """Return eight answers of about 300 characters. Each ends with a number from 0 to 7 inside ``\\boxed{}``."""
    draw = random.Random(0)
    return [f"{' '.join(draw.choices(WORDS, k=60))}. The answer is \\boxed{{{number}}}." for number in range(8)]


def write_sums(path: Path, count: int) -> Path:
    """Write ``count`` questions with answers from 0 to 7, so that one of eight scripted answers is right.

    Return ``path``.
    """
    with path.open("w") as file:
        for i in range(count):
            answer = i % 8
            question = f"What is {i + answer} - {i}? Think first."
            file.write(json.dumps({"id": f"q{i}", "question": question, "answer": str(answer)}) + "\n")
    return path


def used(words: list[str], log: Path) -> tuple[float, float, float]:
    """Run a command, which must succeed, and return its wall seconds, CPU seconds and peak memory in MB."""
    began = time.perf_counter()
    with log.open("ab") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "bestofn.scripts.main", *words], cwd=ROOT, stdout=file, stderr=file
        )
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"bestofn {words[0]} ended with {os.waitstatus_to_exitcode(status)}; see {log}")
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


if __name__ == "__main__":
    main()
