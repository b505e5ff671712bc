"""Measures peak memory and speed of screening for growing numbers of prompts, each number in its own process.

python -m tests.benchmarks.memory_screen [sizes=10000,100000] [held=2000]
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from bestofn.builders.records import Query
from bestofn.builders.sources.screened import Screened

VOCABULARY = 5_000
WORDS = 60


class RandomPrompts:
    """A source of prompts of random words. Every tenth prompt repeats the previous one."""

    def __init__(self, count: int, seed: int) -> None:
        self.name, self.count, self.seed = f"random {seed}", count, seed

    def __iter__(self) -> Iterator[Query]:
        rng, text = random.Random(self.seed), ""
        for number in range(self.count):
            if number % 10 != 9:
                text = " ".join(f"w{rng.randrange(VOCABULARY)}" for _ in range(WORDS))
            yield Query(str(number), "math", ({"role": "user", "content": text},))


def measure(size: int, held: int) -> None:
    source = Screened(RandomPrompts(size, 1), held_out=[RandomPrompts(held, 2)])
    start = time.perf_counter()
    kept = sum(1 for _ in source)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"prompts={size} kept={kept} peak_mb={peak:.0f} prompts_per_s={size / seconds:.0f}", flush=True)


def main(arguments: Sequence[str]) -> int:
    settings = dict(word.split("=", 1) for word in arguments)
    held = settings.get("held", "2000")
    if "size" in settings:
        measure(int(settings["size"]), int(held))
        return 0
    for size in settings.get("sizes", "10000,100000").split(","):
        subprocess.run(
            [sys.executable, "-m", "tests.benchmarks.memory_screen", f"size={size}", f"held={held}"], check=True
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
