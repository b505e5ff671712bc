"""Spreads ``max_queries`` over the splits of a dataset."""

from __future__ import annotations


def shares_of(most: int | None, splits: int) -> list[int | None]:
    """Return the limit of each of ``splits`` splits; all None if ``most`` is None.

    The limits differ by at most 1, and their sum is ``most``.
    """
    if most is None:
        return [None] * splits
    return [most // splits + (place < most % splits) for place in range(splits)]
