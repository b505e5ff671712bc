"""Pure functions over samples: their seeds, their grouping into requests, and the division of usage and cost."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import replace

from bestofn.builders.records import Completion, Request, Sampling, Usage

SEED_STEP = 1_000_003  # a further attempt uses other seeds; with the same seeds it would give the same completions
SEEDS = 2**31 - 1


def seed_of(sampling: Sampling, index: int, attempt: int) -> int | None:
    """The seed of sample ``index``: the base seed plus the index, so that no two samples share one.

    None when ``sampling`` has no base seed.
    """
    if sampling.seed is None:
        return None
    return (sampling.seed + index + SEED_STEP * attempt) % SEEDS


def seeded(request: Request, index: int, attempt: int) -> Request:
    """``request`` with the seed of sample ``index``."""
    seed = seed_of(request.sampling, index, attempt)
    if seed == request.sampling.seed:
        return request
    return replace(request, sampling=replace(request.sampling, seed=seed))


def chunks(indices: Sequence[int], most: int) -> list[list[int]]:
    """Split ascending ``indices`` into runs of consecutive numbers, each at most ``most`` long."""
    runs: list[list[int]] = []
    for index in indices:
        if runs and len(runs[-1]) < most and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return runs


def total_usage(completions: Sequence[Completion]) -> Usage:
    """The usage of all ``completions`` together."""
    return sum((completion.usage for completion in completions), Usage())


def shared_usage(total: Usage, count: int) -> list[Usage]:
    """Divide the usage of one request among its ``count`` completions. The parts sum to ``total`` exactly."""

    def parts(tokens: int) -> list[int]:
        each, rest = divmod(tokens, count)
        return [each + (position < rest) for position in range(count)]

    columns = [parts(getattr(total, field.name)) for field in dataclasses.fields(Usage)]
    return [Usage(*row) for row in zip(*columns, strict=True)]


def shared_cost(usd: float | None, count: int) -> float | None:
    """The cost of one of the ``count`` completions of a reply; None when no price is known."""
    return None if usd is None else usd / max(count, 1)
