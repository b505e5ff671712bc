"""Plans batches of token sequences from their lengths, and finds the common prefix of siblings.

Used by ``sequence_scorer``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Tokens = Sequence[int]


@dataclass(frozen=True, slots=True)
class Sharing:
    """The token ids of siblings, split into their common ``prefix`` and one ending per sibling."""

    prefix: list[int]
    endings: list[list[int]]


def shared_prefix(siblings: Sequence[Tokens], least: int = 32) -> Sharing | None:
    """Split the siblings after their common prefix. Returns None if the prefix is shorter than ``least`` tokens.

    Token ids are compared instead of texts, because the tokenizer may merge the end of a prompt with the beginning of
    an answer. Each ending has at least one token, because the score is read at its last token.
    """
    if len(siblings) < 2:
        return None
    most = min(len(ids) for ids in siblings) - 1
    common = next((place for place in range(most) if len({ids[place] for ids in siblings}) > 1), most)
    if common < least:
        return None
    return Sharing(list(siblings[0][:common]), [list(ids[common:]) for ids in siblings])


def batches(lengths: Sequence[int], budget: int, waste: float = 0.1, cached: int = 0) -> list[list[int]]:
    """Group sequences into batches, the longest first. Each batch is a list of indices in ``lengths``.

    A batch has at most ``budget`` tokens, padding included. The share of padding in a batch is at most ``waste``.
    ``cached`` is the number of tokens that precede each sequence; they also count towards the budget. A sequence that
    is longer than the budget forms a batch of one.
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
    """Return the share of padding tokens in the ``planned`` batches. The benchmark of reward models reports it."""
    padded = sum(len(batch) * max(lengths[place] for place in batch) for batch in planned if batch)
    return 1 - sum(lengths[place] for batch in planned for place in batch) / padded if padded else 0.0
