"""Which ids have passed, in 8 bytes each: ten million of them are 80 MB, where a set of them would be a gigabyte."""

from __future__ import annotations

import hashlib

import numpy as np

RECENT = 4_096  # held in a set before they are sorted away


class SeenIds:
    """``add`` tells whether an id is new.

    An id is known by 64 bits of its SHA-256: of ten million ids, two are taken for one with a chance of 3 in a million.
    Sorted blocks of doubling size (a log-structured merge) keep both the memory and the merging small.
    """

    def __init__(self) -> None:
        self._recent: set[int] = set()
        self._blocks: list[np.ndarray] = []  # sorted, the largest first

    def add(self, name: str) -> bool:
        key = int.from_bytes(hashlib.sha256(name.encode("utf-8", "replace")).digest()[:8], "big")
        if key in self._recent or any(_holds(block, key) for block in self._blocks):
            return False
        self._recent.add(key)
        if len(self._recent) >= RECENT:
            self._sort_away()
        return True

    def _sort_away(self) -> None:
        block = np.sort(np.fromiter(self._recent, "u8", len(self._recent)))
        self._recent.clear()
        while self._blocks and len(self._blocks[-1]) <= len(block):
            block = np.sort(np.concatenate([self._blocks.pop(), block]), kind="stable")
        self._blocks.append(block)


def _holds(block: np.ndarray, key: int) -> bool:
    place = int(block.searchsorted(np.uint64(key)))
    return place < len(block) and int(block[place]) == key
