"""Tournaments that find the best of many answers in few requests. Used by the pairwise and the listwise reward."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence

Match = Callable[[list[int]], Awaitable[list[int]]]
"""Compares the answers of one list and returns those that stay in the tournament."""


async def finalists(
    entrants: Sequence[int], size: int, match: Match, seed: str, most_rounds: int, enough: int | None = None
) -> list[int]:
    """Play rounds until at most ``enough`` (default ``size``) of the ``entrants`` remain, and return them.

    In each round, ``split`` divides the remaining answers into lists of at most ``size``, and ``match`` decides who
    stays. A list of one answer needs no match. More than ``enough`` answers are returned if ``most_rounds`` rounds were
    not enough, because the judge found ties or its replies were invalid.
    """
    remaining = list(entrants)
    for turn in range(most_rounds):
        if len(remaining) <= (enough or size):
            break
        lists = split(remaining, size, f"{seed}:{turn}")
        kept = await asyncio.gather(*(match(part) for part in lists if len(part) > 1))
        remaining = [place for part in [*kept, *(part for part in lists if len(part) == 1)] for place in part]
    return remaining


def split(items: Sequence[int], size: int, seed: str) -> list[list[int]]:
    """Shuffle ``items`` and split them into lists of nearly equal length. A list has at most ``size`` items."""
    order = list(items)
    random.Random(seed).shuffle(order)
    count = -(-len(order) // size)
    return [order[start::count] for start in range(count)]


def stays(length: int) -> int:
    """Return how many answers of a list with ``length`` answers stay in the tournament: half of them, rounded up."""
    return -(-length // 2)


def planned_rounds(entrants: int, size: int) -> list[list[int]]:
    """Return the lengths of the lists in each round before the final. Assumes that the judge decides every match."""
    rounds = []
    while entrants > size:
        count = -(-entrants // size)
        lengths = [len(range(start, entrants, count)) for start in range(count)]
        rounds.append([length for length in lengths if length > 1])
        entrants = sum(stays(length) for length in lengths)
    return rounds
