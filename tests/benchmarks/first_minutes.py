"""Measures the time from a wheel to verified answers: an empty environment, pip, and ten lines of Python.

    python -m tests.benchmarks.first_minutes [--rows 1000] [--limit 120]

Builds the wheel, creates an environment, installs the wheel with constraints.txt, and verifies answers in the style of
GSM8K with the lines of the README. Prints the time of each step. Fails if installation and verification together take longer than ``--limit``
seconds, if torch is installed, or if a verdict is wrong. The first run fills the cache of pip.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.verify_tables import word_problem

ROOT = Path(__file__).resolve().parents[2]
LINES = re.compile(r"```python\n((?:(?!```).)*bestofn\.verify_dataset.*?)```", re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--limit", type=float, default=120.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        timed("wheel", sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT, cwd=folder)
        write_rows(folder / "answers.jsonl", given.rows)
        (folder / "verify.py").write_text(ten_lines(), encoding="utf-8")
        python = folder / "env/bin/python"
        started = time.perf_counter()
        timed("environment", sys.executable, "-m", "venv", folder / "env", cwd=folder)
        (wheel,) = folder.glob("*.whl")
        timed("pip install", python, "-m", "pip", "install", "-qq", "-c", ROOT / "constraints.txt", wheel, cwd=folder)
        site = next((folder / "env/lib").glob("python*/site-packages"))
        size = sum(file.stat().st_size for file in site.rglob("*") if file.is_file())
        print(f"{len(list(site.glob('*.dist-info')))} packages, {size / 1e6:,.0f} MB")
        printed = timed("ten lines", python, folder / "verify.py", cwd=folder)
        seconds = time.perf_counter() - started
        print(printed)
        wrong = len(range(0, given.rows, 3))
        if not re.search(rf"pass +{given.rows - wrong:,} .*fail +{wrong:,} ", printed, re.DOTALL):
            raise SystemExit(f"expected {given.rows - wrong:,} pass and {wrong:,} fail")
        if subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode == 0:
            raise SystemExit("torch is installed")
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"{seconds:.0f} s without the wheel; the limit is {given.limit:.0f} s")
        print(f"processor time of all steps: {used.ru_utime + used.ru_stime:.0f} s")
        if seconds > given.limit:
            raise SystemExit("too slow")


def timed(name: str, *words: object, cwd: Path) -> str:
    """Run a command, print its time, and return its output. Exit if it fails."""
    started = time.perf_counter()
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=env, stdout=subprocess.PIPE, text=True, check=False
    )
    print(f"{name:<12} {time.perf_counter() - started:6.1f} s", flush=True)
    if done.returncode:
        raise SystemExit(f"{name} ended with exit code {done.returncode}")
    return done.stdout


def ten_lines() -> str:
    """Return the lines of the README that verify the file answers.jsonl."""
    (lines,) = LINES.findall((ROOT / "README.md").read_text("utf-8"))
    return lines


def write_rows(file: Path, count: int) -> None:
    """Write ``count`` answers, of which every third is wrong. The references are solutions that end with ``####``."""
    draw = random.Random(0)
    rows = (word_problem(draw, wrong=number % 3 == 0) for number in range(count))
    file.write_text("".join(json.dumps(row | {"answer": f"We multiply.\n#### {row['answer']}"}) + "\n" for row in rows))


if __name__ == "__main__":
    main()
