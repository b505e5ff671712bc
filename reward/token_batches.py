"""Which sequences go through a model together: pure planning, no tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Tokens = Sequence[int]


@dataclass(frozen=True, slots=True)
class Sharing:
    """A query's siblings as one ``prefix`` and their own endings: the prefix is computed once."""

    prefix: list[int]
    endings: list[list[int]]


def shared_prefix(siblings: Sequence[Tokens], least: int = 32) -> Sharing | None:
    """The siblings split at their common prefix of token ids; None when sharing it would not pay.

    Split in ids, not in text: the last tokens of a prompt may merge with an answer's first. Each ending keeps at least
    one token, because the score is read at the last.
    """
    if len(siblings) < 2:
        return None
    most = min(len(ids) for ids in siblings) - 1
    common = next((place for place in range(most) if len({ids[place] for ids in siblings}) > 1), most)
    if common < least:
        return None
    return Sharing(list(siblings[0][:common]), [list(ids[common:]) for ids in siblings])


def batches(lengths: Sequence[int], budget: int, waste: float = 0.1, beside: int = 0) -> list[list[int]]:
    """Positions in batches, the longest first, each at most ``budget`` tokens padded and ``waste`` of it padding.

    ``beside`` tokens of every sequence lie in a cache and count against the budget. A sequence longer than the budget
    is a batch of its own. Sorted by length, so neighbours are alike; padding is bounded by construction.
    """
    order = sorted(range(len(lengths)), key=lambda place: (-lengths[place], place))
    found: list[list[int]] = []
    real = 0
    for place in order:
        batch = found[-1] if found else []
        widest = lengths[batch[0]] if batch else 0
        padded = widest * (len(batch) + 1)
        within = padded + beside * (len(batch) + 1) <= budget
        if batch and within and padded - real - lengths[place] <= waste * padded:
            batch.append(place)
            real += lengths[place]
        else:
            found.append([place])
            real = lengths[place]
    return found


def padding_waste(lengths: Sequence[int], planned: Sequence[Sequence[int]]) -> float:
    """Share of the padded tokens that are padding."""
    padded = sum(len(batch) * max(lengths[place] for place in batch) for batch in planned if batch)
    return 1 - sum(lengths[place] for batch in planned for place in batch) / padded if padded else 0.0
