"""The best of a query's candidates, the best first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

from bestofn.builders.records import Score

Item = TypeVar("Item")


def ranking(scores: Sequence[Score]) -> list[int]:
    """Positions, the highest value first; ties keep their order; without a value (None, NaN) comes last."""
    return sorted(range(len(scores)), key=lambda place: (_missing(scores[place]), -_value(scores[place]), place))


def best_of_n(items: Sequence[Item], scores: Sequence[Score], n: int = 1) -> list[tuple[int, Item, Score]]:
    """The ``n`` best of ``items`` as (original position, item, score), the best first.

    Raises ``ValueError`` unless there is one score an item and n ≥ 1.
    """
    if len(items) != len(scores) or n < 1:
        raise ValueError(f"{len(items)} items, {len(scores)} scores, n={n}; expected one score an item and n ≥ 1")
    return [(place, items[place], scores[place]) for place in ranking(scores)[:n]]


def _missing(score: Score) -> bool:
    return score.value is None or math.isnan(score.value)


def _value(score: Score) -> float:
    return 0.0 if score.value is None or math.isnan(score.value) else score.value
