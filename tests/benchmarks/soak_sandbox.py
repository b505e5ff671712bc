"""Runs many programs, of which some leave processes or files, and lists everything that stays on the machine.

    python -m tests.benchmarks.soak_sandbox [runs=1000] [sandbox=docker,local]

Two of three programs leave processes or files, or are killed, so that their box is replaced. The exit code is 1 if a
container, cgroup, folder or process of a box is left. It is also 1 if a run has an unexpected status.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bestofn.builders.records import Program  # noqa: E402
from bestofn.sandbox.docker_sandbox import DockerSandbox  # noqa: E402
from bestofn.sandbox.leftovers import owner  # noqa: E402
from bestofn.sandbox.local_sandbox import LocalSandbox  # noqa: E402
from tests.sandbox.left_behind import children, left_behind  # noqa: E402

BACKENDS: dict[str, Any] = {"docker": DockerSandbox, "local": LocalSandbox}
UNTIDY = Program("bash", "touch /tmp/left; sleep 60 & echo 42")
KILLED = Program("bash", "kill -9 $$")
TIDY = Program("python", "print(42)")
PROGRAMS = ((UNTIDY, "ok"), (KILLED, "memory"), (TIDY, "ok"))


async def soak(backend: str, runs: int) -> Counter[str]:
    """Run the programs in turn. Return how often each unexpected status occurred."""
    wrong: Counter[str] = Counter()
    numbers = iter(range(runs))

    async def some(sandbox: Any) -> None:
        for number in numbers:
            program, status = PROGRAMS[number % len(PROGRAMS)]
            execution = await sandbox.run(program)
            if execution.status != status:
                wrong[f"{execution.status} for {status}"] += 1

    async with BACKENDS[backend](workers=2) as sandbox:
        await asyncio.gather(some(sandbox), some(sandbox))
    return wrong


def main(arguments: Sequence[str]) -> int:
    options = dict(word.split("=", 1) for word in arguments)
    runs, failed = int(options.get("runs", 1_000)), False
    for backend in options.get("sandbox", ",".join(BACKENDS)).split(","):
        begun = time.monotonic()
        wrong = asyncio.run(soak(backend, runs))
        left = left_behind(owner(), _engine() if backend == "docker" else None)
        left += [f"process {line}" for line in children(os.getpid()) if "-P -X utf8" in line]
        print(
            f"{backend}: {runs:,} runs in {time.monotonic() - begun:.0f} s; unexpected: {dict(wrong) or 'none'}; "
            f"left behind: {', '.join(left) or 'nothing'}"
        )
        failed |= bool(wrong or left)
    return int(failed)


def _engine() -> Any:
    import docker

    return docker.from_env()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
