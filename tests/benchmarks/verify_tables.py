"""Measures ``bestofn verify`` and ``verify_dataset`` on tables of mathematical answers: speed, memory, resuming.

    python -m tests.benchmarks.verify_tables [--rows 100000] [--form parquet|jsonl] [--rounds 2]
    python -m tests.benchmarks.verify_tables --kill --rows 100000     # kill -9 in the middle, then the same command

Each run is a new process. The benchmark prints the time with one and with two workers, their ratio, the CPU time, and
the peak memory of the command and of its largest worker. The memory must not grow with the rows. With ``--kill`` the second run must verify
only the parts that were not finished.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bestofn.builders.api.datasets import PART_ROWS, finished_parts
from tests.verifiers.math.test_pairs import PAIRS

BATCH = 10_000
MEASURED = """
import json, resource, sys, time
from bestofn.builders.api.datasets import verify_file
from pathlib import Path
if __name__ == "__main__":
    source, out, workers = sys.argv[1:]
    started = time.perf_counter()
    done = verify_file(source, Path(out), given={}, kind="math", workers=int(workers))
    seconds = time.perf_counter() - started
    own, worker = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(json.dumps({
        "seconds": seconds, "own_cpu": own.ru_utime + own.ru_stime, "worker_cpu": worker.ru_utime + worker.ru_stime,
        "own_mb": own.ru_maxrss / 1024, "worker_mb": worker.ru_maxrss / 1024, "outcomes": dict(done.outcomes),
    }))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--form", choices=["parquet", "jsonl"], default="parquet")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--kill", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = write_answers(Path(folder) / f"answers.{given.form}", given.rows)
        print(f"{given.rows:,} rows, {source.stat().st_size / 1e6:.0f} MB of {given.form}", flush=True)
        if given.kill:
            kill_and_resume(source, given.rows)
            return
        for _ in range(given.rounds):
            measure(source, [int(count) for count in given.workers.split(",")])


def measure(source: Path, counts: list[int]) -> None:
    """Verify ``source`` once per number of workers in ``counts``.

    Print time, CPU time and memory of each run. Then print the time of the first run divided by the time of the last.
    """
    seconds = []
    for workers in counts:
        out = source.with_name(f"verified{source.suffix}")
        figures = json.loads(finished(start(source, out, workers)))
        seconds.append(figures["seconds"])
        print(
            f"{workers} workers: {figures['seconds']:6.1f} s; CPU {figures['own_cpu']:5.1f} s + workers "
            f"{figures['worker_cpu']:6.1f} s; peak {figures['own_mb']:4.0f} MB + {figures['worker_mb']:4.0f} MB per "
            f"worker; {figures['outcomes']}",
            flush=True,
        )
        out.unlink()
    print(f"{counts[0]} : {counts[-1]} workers = {seconds[0] / seconds[-1]:.2f}", flush=True)


def kill_and_resume(source: Path, rows: int) -> None:
    """Kill a run after a third of its parts, run it again, and compare the result with that of an uninterrupted run."""
    out = source.with_name(f"killed{source.suffix}")
    parts = out.with_name(f"{out.name}.parts")
    process = start(source, out, 2)
    while len(finished_parts(parts)) * PART_ROWS < rows / 3:
        time.sleep(0.02)
        if process.poll() is not None:
            raise SystemExit("the run ended before it could be killed")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    written = {path: path.stat().st_mtime_ns for path in finished_parts(parts)}
    figures = json.loads(finished(start(source, out, 2)))
    whole = source.with_name(f"whole{source.suffix}")
    complete = json.loads(finished(start(source, whole, 2)))
    print(f"killed with {len(written)} parts; resumed in {figures['seconds']:.1f} s of {complete['seconds']:.1f} s")
    if out.read_bytes() != whole.read_bytes():
        raise SystemExit("the resumed file differs from the uninterrupted one")
    print("the resumed file is equal to the uninterrupted one, byte by byte")


def start(source: Path, out: Path, workers: int) -> subprocess.Popen[str]:
    """Start the verification of ``source`` in a new process group."""
    words = [sys.executable, "-c", MEASURED, str(source), str(out), str(workers)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)


def finished(process: subprocess.Popen[str]) -> str:
    """Wait for ``process`` and return its output. Exit if it failed."""
    printed, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"the command ended with exit code {process.returncode}")
    return printed


def write_answers(path: Path, count: int) -> Path:
    """Write ``count`` rows to ``path``, a Parquet or JSON Lines file."""
    rows = answers(count)
    if path.suffix == ".jsonl":
        with path.open("w") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        return path
    writer = None
    while batch := list(islice(rows, BATCH)):
        table = pa.Table.from_pylist(batch)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer:
        writer.close()
    return path


def answers(count: int) -> Iterator[dict[str, str]]:
    """Yield ``count`` worked answers: word problems and notations of the test table, in turn."""
    draw = random.Random(0)
    for number in range(count):
        yield {"id": f"{number:07d}", **(notation(draw) if number % 2 else word_problem(draw, wrong=number % 3 == 0))}


def word_problem(draw: random.Random, *, wrong: bool) -> dict[str, str]:
    """Return a word problem in the style of GSM8K with a worked answer.

    Its final answer is wrong if ``wrong`` is true.
    """
    price, items = draw.randint(2, 90), draw.randint(2, 40)
    value = price * items + wrong * draw.randint(1, 9)
    shown = draw.choice([f"{value}", f"\\${value:,}", f"{value}.00", f"\\frac{{{2 * value}}}{{2}}"])
    work = f"Each box costs ${price} and she buys {items} of them, so we multiply: {price} * {items}.\n" * 6
    question = f"A box costs ${price}. How many dollars do {items} boxes cost?"
    return {"question": question, "completion": _concluded(work, shown), "answer": str(price * items)}


def notation(draw: random.Random) -> dict[str, str]:
    """Return an answer in a notation of the test table of the math verifier."""
    _, reference, answer, _ = draw.choice(PAIRS)
    work = "We square both sides, $x^2 - 2ax + a^2 = b^2$, and factor the left side as $(x - a)^2$.\n" * 6
    return {"question": "Solve the problem.", "completion": _concluded(work, answer), "answer": reference}


def _concluded(work: str, shown: str) -> str:
    return f"{work}\nTherefore, the final answer is \\boxed{{{shown}}}."


if __name__ == "__main__":
    main()
