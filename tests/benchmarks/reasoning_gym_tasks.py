"""Verifies right and wrong answers of each task of Reasoning Gym as a build does.

``python -m tests.benchmarks.reasoning_gym_tasks instances=50 part=0/4`` prints one line per task with an unexpected
outcome. At the end it prints the number of verdicts, the memory, and the running processes and open files. A task that
creates its instances too slowly is listed.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bestofn.builders.records import Candidate, Query
from bestofn.sandbox.workers import ProcessPool
from bestofn.verifiers.reasoning_gym import ReasoningGymVerifier

MAKE_S = 60.0
NEEDS_SETTINGS = frozenset({"composite"})


@dataclass
class Examined:
    """The result for one task: the outcomes of right and of wrong answers, and the slowest verdict in seconds."""

    name: str
    problem: str = ""
    outcomes: dict[str, Counter[str]] = field(default_factory=lambda: {"right": Counter(), "wrong": Counter()})
    slowest_s: float = 0.0

    @property
    def is_expected(self) -> bool:
        return not self.problem and set(self.outcomes["right"]) <= {"pass"} and set(self.outcomes["wrong"]) <= {"fail"}

    def line(self) -> str:
        counts = {kind: dict(count) for kind, count in self.outcomes.items()}
        return f"{self.name}: {self.problem or counts}, slowest verdict {self.slowest_s:.1f} s"


def made(name: str, instances: int) -> list[Query]:
    """Return the queries of a task. Runs in a worker process, because some tasks take very long."""
    from bestofn.builders.sources import reasoning_gym

    reasoning_gym.UNUSABLE.clear()  # the tasks that a build refuses are examined, too
    return list(reasoning_gym.ReasoningGym(tasks=[name], size=instances, seed=0))


async def examine(name: str, instances: int, workers: ProcessPool) -> Examined:
    """Verify three answers per instance: the right one, that of another instance, and a text that is not an answer."""
    examined, verifier = Examined(name), ReasoningGymVerifier(workers)
    try:
        queries = await workers.call(made, name, instances, timeout_s=MAKE_S)
    except Exception as error:  # other people's code; the table names the failure
        examined.problem = f"not made: {type(error).__name__}: {error}"[:150]
        return examined
    for place, query in enumerate(queries):
        for kind, text in answers(queries, place):
            if text is None:
                examined.outcomes[kind]["no reference"] += 1
                continue
            answer = Candidate(0, ({"role": "assistant", "content": f"<answer>{text}</answer>"},))
            verdict = await verifier.verify(query, answer)
            examined.outcomes[kind][verdict.outcome] += 1
            examined.slowest_s = max(examined.slowest_s, verdict.seconds)
    return examined


def answers(queries: Sequence[Query], place: int) -> list[tuple[str, str | None]]:
    """Return (label, answer) of one right and two wrong answers to the query at ``place``.

    An answer is None if the query has no reference, or if no other query has a different one.
    """
    right = queries[place].reference.answer
    others = (query.reference.answer for query in [*queries[place + 1 :], *queries[:place]])
    other = next((answer for answer in others if answer not in (right, None)), None)
    return [("right", right), ("wrong", other), ("wrong", "I do not know")]


async def main(instances: int, part: int, parts: int) -> int:
    """Examine every ``parts``-th task from ``part`` on, and print unexpected outcomes.

    Return the number of verdicts.
    """
    from reasoning_gym.factory import DATASETS

    names = sorted(set(DATASETS) - NEEDS_SETTINGS)[part::parts]
    begun, verdicts = time.monotonic(), 0
    async with ProcessPool(1) as workers:
        for name in names:
            examined = await examine(name, instances, workers)
            verdicts += sum(sum(count.values()) - count["no reference"] for count in examined.outcomes.values())
            if not examined.is_expected:
                print(examined.line(), flush=True)
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    files = len(os.listdir("/proc/self/fd"))
    print(f"{len(names)} tasks, {verdicts} verdicts, {time.monotonic() - begun:.0f} s, at most {memory} MB,", end=" ")
    print(f"processes left: {len(children)}, open files: {files}")
    return verdicts


if __name__ == "__main__":
    from tests.benchmarks import reasoning_gym  # worker processes cannot import a function of __main__

    given = dict(word.split("=", 1) for word in sys.argv[1:])
    own_part, all_parts = map(int, given.get("part", "0/1").split("/"))
    asyncio.run(reasoning_gym.main(int(given.get("instances", "50")), own_part, all_parts))
