"""Chance that is the same in every process: everything made up comes from a hash of what it is made up for."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from typing import Any, TypeVar

Item = TypeVar("Item")


class Seeded:
    """Draws named by ``parts`` (JSON-like values): the same parts give the same draws.

    Only ``random.random()`` is used of Python's generator, the one stream that is promised not to change.
    """

    def __init__(self, *parts: Any) -> None:
        text = json.dumps(parts, sort_keys=True, ensure_ascii=True, default=str, separators=(",", ":"))
        self._random = random.Random(int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big"))

    def integer(self, low: int, high: int) -> int:
        """An integer from ``low`` to ``high``, both included."""
        return low + int(self._random.random() * (high - low + 1))

    def number(self, low: float, high: float, digits: int = 2) -> float:
        return round(low + self._random.random() * (high - low), digits)

    def chance(self, share: float) -> bool:
        return self._random.random() < share

    def choice(self, items: Sequence[Item]) -> Item:
        return items[self.integer(0, len(items) - 1)]

    def sample(self, items: Sequence[Item], k: int) -> list[Item]:
        """``k`` different positions of ``items``, in drawn order; all of them when there are fewer."""
        rest, drawn = list(items), []
        while rest and len(drawn) < k:
            drawn.append(rest.pop(self.integer(0, len(rest) - 1)))
        return drawn

    def letters(self, length: int, alphabet: str = "abcdefghijklmnopqrstuvwxyz0123456789") -> str:
        return "".join(self.choice(alphabet) for _ in range(length))
