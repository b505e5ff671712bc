"""Computes the seeds of samples, groups samples into requests, and divides usage and cost among completions."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import replace

from bestofn.builders.records import Completion, Request, Sampling, Usage

SEED_STEP = 1_000_003  # added to the seed per attempt: with the same seed, a new attempt would give the same completion
SEEDS = 2**31 - 1


def seed_of(sampling: Sampling, index: int, attempt: int) -> int | None:
    """Return the seed of sample ``index``. It differs between samples and between attempts.

    Returns None if ``sampling`` has no base seed.
    """
    if sampling.seed is None:
        return None
    return (sampling.seed + index + SEED_STEP * attempt) % SEEDS


def seeded(request: Request, index: int, attempt: int) -> Request:
    """Return ``request`` with the seed of sample ``index``."""
    seed = seed_of(request.sampling, index, attempt)
    if seed == request.sampling.seed:
        return request
    return replace(request, sampling=replace(request.sampling, seed=seed))


def chunks(indices: Sequence[int], most: int) -> list[list[int]]:
    """Split ascending ``indices`` into lists of consecutive numbers. A list has at most ``most`` numbers."""
    runs: list[list[int]] = []
    for index in indices:
        if runs and len(runs[-1]) < most and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return runs


def total_usage(completions: Sequence[Completion]) -> Usage:
    """Return the sum of the usage of all ``completions``."""
    if len(completions) == 1:
        return completions[0].usage
    return sum((completion.usage for completion in completions), Usage())


def shared_usage(total: Usage, count: int) -> list[Usage]:
    """Divide the usage of one request among its ``count`` completions. The sum of the parts is exactly ``total``."""
    if count == 1:
        return [total]
    divided = [divmod(getattr(total, field.name), count) for field in dataclasses.fields(Usage)]
    if not any(rest for _, rest in divided):
        return [Usage(*(each for each, _ in divided))] * count
    return [Usage(*(each + (place < rest) for each, rest in divided)) for place in range(count)]


def shared_cost(usd: float | None, count: int) -> float | None:
    """Return the cost in dollars of one of ``count`` completions: ``usd / count``. None if no price is known."""
    return None if usd is None else usd / max(count, 1)
