"""Sends many arbitrary replies through the sampler and the journal (``tests.faults.fuzz``).

    python -m tests.benchmarks.fuzz_replies [--examples 20000] [--shape chat]

``--shape`` is ``chat``, ``responses``, ``messages`` or ``ollama``; without it, all four are checked.
"""

from __future__ import annotations

import argparse
import time

from hypothesis import HealthCheck, given, settings

from tests.faults.fuzz import Fuzzer, bodies
from tests.faults.shapes import SHAPES


def fuzz(shape: str, examples: int) -> None:
    """Check ``examples`` replies in ``shape``. Raises the error of the smallest reply that breaks a rule."""
    with Fuzzer(shape) as fuzzer:

        @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(body=bodies(fuzzer.shape))
        def check(body: bytes) -> None:
            fuzzer.check(body)

        check()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=20_000)
    parser.add_argument("--shape", choices=SHAPES)
    given_words = parser.parse_args()
    for shape in [given_words.shape] if given_words.shape else SHAPES:
        started = time.monotonic()
        fuzz(shape, given_words.examples)
        print(f"{shape}: {given_words.examples:,} replies hold, {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
