"""Measures the cost of the requests of a judge, a reward or a simulated tool. Used by the stages.

All samplers report the samples that they return (``record_costs``). A block ``with metered() as meter`` collects the
samples that are drawn in it and in its tasks. Samples from the journal have the cost that they had when they were new.
So the cost of a candidate does not depend on how often the run was resumed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from bestofn.builders.errors import ProviderError
from bestofn.builders.records import Completion

Sample = tuple[bytes, int, int]
"""One sample: (journal key, attempt, index)."""


@dataclass
class Meter:
    """The samples that were drawn in a block, with their costs in dollars. None means that no price is known."""

    costs: dict[Sample, float | None] = field(default_factory=dict)


_meter: ContextVar[Meter | None] = ContextVar("meter", default=None)


@contextmanager
def metered() -> Iterator[Meter]:
    """Yield a ``Meter`` that collects the costs of the samples drawn in the block."""
    meter = Meter()
    token = _meter.set(meter)
    try:
        yield meter
    finally:
        _meter.reset(token)


def is_metered() -> bool:
    """Return whether the current task runs in a ``metered`` block."""
    return _meter.get() is not None


def record_costs(key: bytes, attempt: int, answers: Mapping[int, Completion | ProviderError]) -> None:
    """Add the costs of samples to the meter of the current block, if there is one.

    ``answers`` maps a sample index to its completion or its error.
    """
    meter = _meter.get()
    if meter is not None:
        drawn = {index: answer for index, answer in answers.items() if isinstance(answer, Completion)}
        meter.costs.update({(key, attempt, index): answer.cost_usd for index, answer in drawn.items()})


def costs_of(meters: Sequence[Meter]) -> list[float | None]:
    """Return the cost in dollars of each block, given its meter.

    The cost of a block that drew no sample with a known price is None. If several blocks have drawn the same sample, it
    was paid for once. So only the first of these blocks has the cost of this sample.
    """
    seen: set[Sample] = set()
    totals: list[float | None] = []
    for meter in meters:
        known = [usd for sample, usd in meter.costs.items() if usd is not None and sample not in seen]
        priced = any(usd is not None for usd in meter.costs.values())
        totals.append(sum(known) if priced else None)
        seen.update(meter.costs)
    return totals
