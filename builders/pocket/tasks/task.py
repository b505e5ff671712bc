"""One synthetic task, and the part of the data that it belongs to."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bestofn.builders.records import Query, Reference

Part = Literal["starter", "heldout", "train"]
PARTS: tuple[Part, ...] = ("starter", "heldout", "train")
SHARES = {"starter": 8, "heldout": 20}  # per cent of all tasks; the rest is for training


@dataclass(frozen=True, slots=True)
class Task:
    """A question, its right answer as a model would write it, and wrong ones that look like it.

    ``facts`` are what the question is about (numbers, operations, names) without its wording: two tasks of a family
    with equal facts are the same problem. ``difficulty`` from 0 to 1 says how readily it is got wrong. ``reference`` is
    made only when asked for, for training needs none. ``closing`` is what to say after a tool has answered.
    """

    family: str
    facts: tuple[Any, ...]
    question: str
    answer: str
    slips: tuple[str, ...]
    reference: Callable[[], Reference]
    difficulty: float = 0.5
    tools: tuple[Mapping[str, Any], ...] = ()
    closing: str = ""
    result: Mapping[str, Any] = field(default_factory=dict)  # what the called tool may give back, for training

    @property
    def split(self) -> str:
        """math, code or tool_calling."""
        return self.family.partition(".")[0]

    @property
    def digest(self) -> bytes:
        return hashlib.sha256(repr((self.family, self.facts)).encode()).digest()

    @property
    def part(self) -> Part:
        return part_of(self.digest)

    def query(self) -> Query:
        return Query(
            id=f"{self.family}-{self.digest.hex()[:12]}",
            split=self.split,
            messages=({"role": "user", "content": self.question},),
            tools=self.tools,
            reference=self.reference(),
            source="bestofn",
            metadata={"family": self.family, "part": self.part},
        )


def part_of(digest: bytes) -> Part:
    """The one part that the task with this digest is in."""
    place = int.from_bytes(digest[-4:], "big") % 100
    if place < SHARES["starter"]:
        return "starter"
    return "heldout" if place < SHARES["starter"] + SHARES["heldout"] else "train"
