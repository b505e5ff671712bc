"""Checks that the time of a function grows linearly with the size of its input, regardless of the processor's speed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

FACTOR = 8  # the larger input is this much larger
LINEAR_AT_MOST = 3 * FACTOR  # quadratic growth would be 64 times
CLOCK_STEP_S = 0.02  # a shorter time counts as this long, because the clock cannot measure it


def assert_linear(work: Callable[[str], Any], piece: str, length: int) -> None:
    """Fail if ``work`` takes far more than 8 times as long for ``length`` characters as for an eighth of them.

    The text repeats ``piece``. Three pairs of times are measured, because other processes can slow down a measurement.
    One pair within the bound is enough.
    """
    work(piece)
    pairs = []
    for _ in range(3):
        pairs.append((_cpu_seconds(work, piece, length // FACTOR), _cpu_seconds(work, piece, length)))
        if pairs[-1][1] < LINEAR_AT_MOST * max(CLOCK_STEP_S, pairs[-1][0]):
            return
    raise AssertionError(f"CPU seconds for {length // FACTOR:,} and {length:,} characters of {piece!r}: {pairs}")


def _cpu_seconds(work: Callable[[str], Any], piece: str, length: int) -> float:
    text = piece * (length // len(piece))
    started = time.process_time()
    work(text)
    return time.process_time() - started
