"""A random generator that gives the same numbers in every process. Its seed is a hash of the given values."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


class Seeded:
    """A random generator whose seed is computed from ``parts``, which are JSON-like values.

    The same ``parts`` always give the same random numbers. The class uses only the method ``random()`` of Python's
    generator, because the other methods may give different results in another version of Python.
    """

    def __init__(self, *parts: object) -> None:
        text = json.dumps(parts, sort_keys=True, ensure_ascii=True, default=str, separators=(",", ":"))
        self._random = random.Random(int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big"))

    def integer(self, low: int, high: int) -> int:
        """Return a random integer from ``low`` to ``high``, both included."""
        return low + int(self._random.random() * (high - low + 1))

    def number(self, low: float, high: float, digits: int = 2) -> float:
        """Return a random number from ``low`` to ``high``, rounded to ``digits`` decimals."""
        return round(low + self._random.random() * (high - low), digits)

    def chance(self, share: float) -> bool:
        """Return True with probability ``share``."""
        return self._random.random() < share

    def choice(self, items: Sequence[Item]) -> Item:
        """Return one of ``items``; all are equally likely."""
        return items[self.integer(0, len(items) - 1)]

    def sample(self, items: Sequence[Item], k: int) -> list[Item]:
        """Return ``k`` of ``items`` in random order, or all of them if there are fewer than ``k``.

        The items are drawn without replacement.
        """
        rest, drawn = list(items), []
        while rest and len(drawn) < k:
            drawn.append(rest.pop(self.integer(0, len(rest) - 1)))
        return drawn

    def letters(self, length: int, alphabet: str = "abcdefghijklmnopqrstuvwxyz0123456789") -> str:
        """Return a string of ``length`` random characters from ``alphabet``."""
        return "".join(self.choice(alphabet) for _ in range(length))
