"""Kills trainings and loops with SIGKILL at random moments, runs the same command again, and compares the results.

    python tests/benchmarks/kill_training.py [--kills 4] [--seed 0] [--methods dpo sft kto grpo reward loop]

For each method, one training runs without an interruption. Then the same training runs in an empty folder and is killed
``kills`` times. Each kill comes after a random part of the duration of a whole run. The last attempt is not killed. ``loop`` is
``bestofn loop dpo``. The weights must be equal bit by bit, and so must the metrics and the tables, except for timings.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq

BESTOFN = [sys.executable, "-m", "bestofn"]
METHODS = ("dpo", "sft", "kto", "grpo", "reward", "loop")
DATA = ["queries=9", "heldout=8", "n=3", "splits=[math]", "build=['pairs=verified_vs_refuted','sandbox=none']"]
QUICK = ["sandbox=none", "trl.per_device_train_batch_size=4", "trl.max_steps=12", "trl.save_strategy=steps"]
QUICK += ["trl.save_steps=2"]
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
TIMINGS = ("_runtime", "_per_second")
GRPO = ["trl.num_generations=4", "trl.max_completion_length=24"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--methods", nargs="*", default=METHODS, choices=METHODS)
    given = parser.parse_args()
    random.seed(given.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(
            [*BESTOFN, "loop", "dpo", *DATA, *QUICK, "rounds=1", f"out={folder / 'data'}"], check=True, **QUIET
        )
        good = [trial(method, given.kills, folder) for method in given.methods]
    print(f"{sum(good)} of {len(good)} methods hold, with {given.kills} kills each")


def trial(method: str, kills: int, folder: Path) -> bool:
    """Run ``method`` once without and once with kills. Return whether the results are equal."""
    out, whole = folder / method, folder / f"{method}-whole"
    words = command(method, folder / "data" / "round-1", out)
    started = time.monotonic()
    subprocess.run(words, check=True, **QUIET)
    seconds = time.monotonic() - started
    out.rename(whole)  # the killed run has the same folder, because a model is named by its folder
    moments = []
    for _ in range(kills):
        process = subprocess.Popen(words, **QUIET)
        moments.append(random.uniform(0.1, 1.0) * seconds)
        try:
            process.wait(moments[-1])
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    subprocess.run(words, check=True, **QUIET)
    same = result(out) == result(whole)
    shown = ", ".join(f"{moment:.1f}" for moment in moments)
    print(f"{method}: whole run {seconds:.1f} s, killed after {shown} s, same result: {same}", flush=True)
    shutil.rmtree(out)
    return same


def command(method: str, run: Path, out: Path) -> Sequence[str]:
    """Return the words of the command that trains with ``method``."""
    if method == "loop":
        return [*BESTOFN, "loop", "dpo", *DATA, *QUICK, "rounds=1", f"out={out}"]
    return [*BESTOFN, "train", method, str(run), *QUICK, *(GRPO if method == "grpo" else ()), f"out={out}"]


def result(out: Path) -> object:
    """Return the digests of all weights, the metrics without timings, and the published tables of the builds."""
    weights = {
        str(file.relative_to(out)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(out.rglob("model.safetensors"))
        if "checkpoint-" not in str(file)
    }
    metrics = {}
    for file in sorted(out.rglob("metrics.json")):
        values = json.loads(file.read_text())["metrics"]
        metrics[str(file.relative_to(out))] = {
            key: value for key, value in values.items() if key.startswith("eval_") and not key.endswith(TIMINGS)
        }
    tables = {
        str(file.relative_to(out)): pq.read_table(file).to_pylist()
        for file in sorted(out.rglob("*.parquet"))
        if file.parent.name in ("dpo", "sft", "kto", "grpo", "reward_model")
    }
    loops = [json.loads(file.read_text())["splits"] for file in out.glob("loop.json")]
    return weights, metrics, tables, loops


if __name__ == "__main__":
    main()
