"""Measures which share of GRPO's training time the reward takes, in ten steps of examples/grpo_with_trl.py.

The reward has two workers.

    python -m tests.benchmarks.grpo_share [--limit 0.05]

Prints the time of each step and of its reward call. Fails if all calls take more than ``--limit`` of the time of all steps.
"""

from __future__ import annotations

import argparse
import os
import runpy
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from transformers import Trainer

from bestofn.builders.api.rewards import VerifierReward

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "grpo_with_trl.py"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=0.05)
    given = parser.parse_args()
    rewards, steps = timed_example()
    for number, (reward, step) in enumerate(zip(rewards, steps, strict=True), 1):
        print(f"step {number:2}: {step:6.2f} s, reward {reward * 1e3:7.1f} ms, {reward / step:6.2%}")
    share = sum(rewards) / sum(steps)
    print(f"all steps: {share:.2%}")
    if share > given.limit:
        raise SystemExit(f"expected at most {given.limit:.0%}")


def timed_example() -> tuple[list[float], list[float]]:
    """Run the example, and return the seconds of each reward call and of each step."""
    rewards: list[float] = []
    steps: list[float] = []
    called, logged = VerifierReward.__call__, Trainer.log

    def call(self: VerifierReward, *given: Any, **columns: Any) -> Sequence[float | None]:
        started = time.perf_counter()
        values = called(self, *given, **columns)
        rewards.append(time.perf_counter() - started)
        return values

    def log(self: Trainer, logs: dict[str, float], *given: Any) -> None:
        if "step_time" in logs:
            steps.append(logs["step_time"])
        logged(self, logs, *given)

    with tempfile.TemporaryDirectory() as folder, mock.patch.object(VerifierReward, "__call__", call):
        os.chdir(folder)
        with mock.patch.object(Trainer, "log", log):
            runpy.run_path(str(EXAMPLE), run_name="__main__")
    return rewards, steps


if __name__ == "__main__":
    main()
