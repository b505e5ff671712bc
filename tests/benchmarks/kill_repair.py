"""Kills builds while their service fails completely, repairs the service, and finishes with the same command.

    python -m tests.benchmarks.kill_repair [--trials 20] [--prompts 300] [--concurrency 32] [--seed 0]

In each trial, the service fails at all requests, in one way, until the first build ends or is killed at a random
moment. It then answers a random number of requests and fails completely again, until the second build ends or is
killed. Then the service is repaired, and the same command runs to its end.

A trial succeeds if this last command ends with exit code 0 and every candidate has an answer. In addition, no request
was answered twice, except those that were in flight.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from bestofn.builders.tables import shards
from tests.benchmarks.kill_resume import N, start, write_sums
from tests.faults.catalogue import FAULTS
from tests.faults.server import FaultServer
from tests.faults.shapes import SHAPES

OUTAGES = ("500", "503", "429", "404", "closed without a reply", "reset without a reply", "an empty body", "no HTTP")
LONGEST_S = 8.0  # a build is killed after at most this time
SETTINGS = ("provider.limits.patience_s=3", "shard_size=50")


class Trial(NamedTuple):
    """The result of one trial."""

    fault: str
    kills: int
    code: int
    missing: int
    twice: int

    def holds(self, in_flight: int) -> bool:
        """Whether the run is complete and no request was paid for twice, except those in flight."""
        return self.code == 0 and self.missing == 0 and self.twice <= in_flight


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in {"trials": 20, "prompts": 300, "concurrency": 32, "seed": 0}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    random.seed(given.seed)
    good = 0
    for number in range(given.trials):
        with tempfile.TemporaryDirectory() as folder:
            trial = run_trial(Path(folder), given.prompts, given.concurrency)
        good += trial.holds(given.concurrency)
        print(
            f"trial {number} ({trial.fault}, {trial.kills} kills): exit code {trial.code}, {trial.missing} candidates without an answer, "
            f"{trial.twice} requests answered twice (at most {given.concurrency})",
            flush=True,
        )
    print(f"{good} of {given.trials} trials hold")


def run_trial(folder: Path, prompts: int, concurrency: int, longest_s: float = LONGEST_S) -> Trial:
    """Run one trial in ``folder``."""
    data, out = write_sums(folder / "sums.jsonl", prompts), folder / "run"
    fault = FAULTS[random.choice(OUTAGES)]
    with FaultServer(SHAPES["chat"], [fault], broken=lambda number: True, latency_s=0.3) as server:
        kills = end_or_kill(start(data, server.port, out, concurrency, *SETTINGS), longest_s)
        works_until = server.requests + random.randint(1, prompts - 1)
        server.broken = lambda number: number >= works_until
        kills += end_or_kill(start(data, server.port, out, concurrency, *SETTINGS), longest_s)
        server.broken = lambda number: False
        code = start(data, server.port, out, concurrency, *SETTINGS).wait(300)
        answered = server.requests - server.met.total()
    return Trial(fault.name, kills, code, missing_answers(out, prompts), answered - prompts)


def end_or_kill(process: subprocess.Popen[bytes], longest_s: float) -> bool:
    """Wait a random time, and send SIGKILL to ``process`` if it still runs. Return whether it was killed."""
    try:
        process.wait(random.uniform(0.2, 1.0) * longest_s)
        return False
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return True
    finally:
        time.sleep(0.3)  # the server finishes the open requests


def missing_answers(out: Path, prompts: int) -> int:
    """Return the number of candidates that have no answer."""
    candidates = [one for row in shards.nested(shards.parts_of(out)) for one in row["candidates"]]
    return prompts * N - sum(not one["error"] for one in candidates)


if __name__ == "__main__":
    main()
