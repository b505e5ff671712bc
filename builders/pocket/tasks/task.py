"""Defines a synthetic task and assigns it to a part of the data. The other modules of the package create tasks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from bestofn.builders.records import JsonObject, Query, Reference, Tool

Part = Literal["starter", "heldout", "train"]
PARTS: tuple[Part, ...] = ("starter", "heldout", "train")
SHARES = {"starter": 8, "heldout": 20}  # percent of all tasks; all other tasks are for training


@dataclass(frozen=True, slots=True)
class Task:
    """A question, a right answer in the style of a model, and plausible wrong answers (``slips``).

    - ``facts``: the content of the question, such as numbers, operations and names, without the wording. Two tasks of
      one family with equal facts are the same problem.
    - ``reference``: returns the reference for the verifier. It is a function because training does not need it.
    - ``difficulty``: from 0 to 1. A higher value increases the share of wrong answers in training.
    - ``closing``: the assistant's message after the tool has replied.
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
    result: JsonObject = field(default_factory=dict)  # an example of the called tool's result, used in training

    @property
    def split(self) -> str:
        """The split of the task: ``math``, ``code`` or ``tool_calling``."""
        return self.family.partition(".")[0]

    @property
    def digest(self) -> bytes:
        """The SHA-256 hash of family and facts. Tasks with equal hashes are the same problem."""
        return hashlib.sha256(repr((self.family, self.facts)).encode()).digest()

    @property
    def part(self) -> Part:
        """The part of the data: ``starter``, ``heldout`` or ``train``. It depends only on ``digest``."""
        return part_of(self.digest)

    def query(self) -> Query:
        """Convert the task to a query with its reference."""
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
    """Return the part of the data for a task with this ``digest``: ``starter``, ``heldout`` or ``train``."""
    place = int.from_bytes(digest[-4:], "big") % 100
    if place < SHARES["starter"]:
        return "starter"
    return "heldout" if place < SHARES["starter"] + SHARES["heldout"] else "train"
