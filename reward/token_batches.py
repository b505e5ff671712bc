"""Plans and runs batches of token sequences, and finds the common prefix of siblings.

Used by ``sequence_scorer``, ``model_families`` and ``step_model``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from bestofn.builders.errors import MachineError

if TYPE_CHECKING:
    import torch

Tokens = Sequence[int]
Result = TypeVar("Result")


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
    """Return the share of padding tokens in the ``planned`` batches, from 0 to 1."""
    padded = sum(len(batch) * max(lengths[place] for place in batch) for batch in planned if batch)
    return 1 - sum(lengths[place] for batch in planned for place in batch) / padded if padded else 0.0


def within_memory(work: Callable[[], Result]) -> Result | None:
    """Call ``work`` and return its result, or None if the device runs out of memory."""
    import torch

    try:
        return work()
    except torch.OutOfMemoryError:
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return None


def in_batches(work: list[list[int]], forward: Callable[[list[int]], Sequence[Result]]) -> Iterator[tuple[int, Result]]:
    """Call ``forward`` with each batch of ``work``, and yield (index of the sequence, result).

    A batch that exceeds the memory of the device is halved. Its halves are added to the remaining batches in ``work``.
    Raises ``MachineError`` if not even one sequence fits in memory.
    """
    while work:
        batch = work.pop(0)
        results = within_memory(lambda batch=batch: forward(batch))
        if results is None:
            work[:0] = _halves(batch)
        else:
            yield from zip(batch, results, strict=True)


def _halves(batch: list[int]) -> list[list[int]]:
    if len(batch) < 2:
        raise MachineError(
            "The memory of the device is too small for one sequence of the reward model. Set a smaller max_length, "
            "dtype=bfloat16, or device_map=auto for several devices."
        )
    middle = len(batch) // 2
    return [batch[:middle], batch[middle:]]


def padded(sequences: Sequence[Sequence[int]], pad: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Return token ids and attention mask, both padded on the right to the length of the longest sequence."""
    import torch

    width = max(map(len, sequences))
    ids = torch.tensor([[*one, *[pad] * (width - len(one))] for one in sequences], device=device)
    mask = torch.tensor([[1] * len(one) + [0] * (width - len(one)) for one in sequences], device=device)
    return ids, mask
