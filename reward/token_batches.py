"""Which sequences go through a model together. Plans with lengths and token ids only; ``sequence_scorer`` uses it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Tokens = Sequence[int]


@dataclass(frozen=True, slots=True)
class Sharing:
    """Siblings as one common ``prefix``, which is computed once, and one ending per sibling."""

    prefix: list[int]
    endings: list[list[int]]


def shared_prefix(siblings: Sequence[Tokens], least: int = 32) -> Sharing | None:
    """The siblings split at their common prefix, or None when it is shorter than ``least`` tokens.

    The split is in token ids, because the last tokens of a prompt may merge with the first of an answer. Each ending
    has at least one token, because the score is read at the last one.
    """
    if len(siblings) < 2:
        return None
    most = min(len(ids) for ids in siblings) - 1
    common = next((place for place in range(most) if len({ids[place] for ids in siblings}) > 1), most)
    if common < least:
        return None
    return Sharing(list(siblings[0][:common]), [list(ids[common:]) for ids in siblings])


def batches(lengths: Sequence[int], budget: int, waste: float = 0.1, cached: int = 0) -> list[list[int]]:
    """Places in ``lengths``, grouped into batches, the longest first.

    A batch has at most ``budget`` tokens including padding, and at most the share ``waste`` of it is padding.
    ``cached`` tokens per sequence are in a cache and count towards the budget. A sequence that exceeds the budget is a
    batch of one.
    """
    order = sorted(range(len(lengths)), key=lambda place: (-lengths[place], place))
    planned: list[list[int]] = []
    real = 0
    for place in order:
        batch = planned[-1] if planned else []
        widest = lengths[batch[0]] if batch else 0
        padded = widest * (len(batch) + 1)
        within = padded + cached * (len(batch) + 1) <= budget
        if batch and within and padded - real - lengths[place] <= waste * padded:
            batch.append(place)
            real += lengths[place]
        else:
            planned.append([place])
            real = lengths[place]
    return planned


def padding_waste(lengths: Sequence[int], planned: Sequence[Sequence[int]]) -> float:
    """The share of padding in the tokens of ``planned`` batches. The benchmark of reward models reports it."""
    padded = sum(len(batch) * max(lengths[place] for place in batch) for batch in planned if batch)
    return 1 - sum(lengths[place] for batch in planned for place in batch) / padded if padded else 0.0
