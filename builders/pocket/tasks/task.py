"""One synthetic task, and the part of the data that it belongs to. Made by the modules of each domain."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from bestofn.builders.records import JsonObject, Query, Reference, Tool

Part = Literal["starter", "heldout", "train"]
PARTS: tuple[Part, ...] = ("starter", "heldout", "train")
SHARES = {"starter": 8, "heldout": 20}  # percent of all tasks; the rest is for training


@dataclass(frozen=True, slots=True)
class Task:
    """A question, a right answer as a model would write it, and plausible wrong answers (``slips``).

    ``facts`` are the content of the question (numbers, operations, names) without its wording: two tasks of a family
    with equal facts are the same problem. ``difficulty``, from 0 to 1, raises the share of wrong answers in training.
    ``reference`` is called only when it is needed; training does not need it. ``closing`` is the assistant's message
    after a tool has answered.
    """

    family: str
    facts: tuple[object, ...]
    question: str
    answer: str
    slips: tuple[str, ...]
    reference: Callable[[], Reference]
    difficulty: float = 0.5
    tools: tuple[Tool, ...] = ()
    closing: str = ""
    result: JsonObject = field(default_factory=dict)  # a possible result of the called tool, for training

    @property
    def split(self) -> str:
        """math, code or tool_calling."""
        return self.family.partition(".")[0]

    @property
    def digest(self) -> bytes:
        """A hash of family and facts."""
        return hashlib.sha256(repr((self.family, self.facts)).encode()).digest()

    @property
    def part(self) -> Part:
        """The part of this task: starter, heldout or train. The digest decides, so each task is in one part only."""
        return part_of(self.digest)

    def query(self) -> Query:
        """The task as a query with its reference."""
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
    """The part of a task, from its digest."""
    place = int.from_bytes(digest[-4:], "big") % 100
    if place < SHARES["starter"]:
        return "starter"
    return "heldout" if place < SHARES["starter"] + SHARES["heldout"] else "train"
