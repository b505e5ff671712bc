"""What a comparison goes by, and what it finds."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from bestofn.verifiers.math_verifier.nodes import Node
from bestofn.verifiers.math_verifier.rounding import Rounding

MissingUnit = Literal["pass", "abstain", "fail"]


_PERCENT = re.compile(r"%|percent", re.IGNORECASE)
_DEGREES = re.compile(r"\b(?:in|of|many) degrees\b|degree measure", re.IGNORECASE)
_ORDER = re.compile(
    r"\b(?:in (?:increasing|decreasing|ascending|descending|that) order|respectively|from (?:least|smallest"
    r"|greatest|largest)|ordered)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Terms:
    """What the comparison goes by: the policies, and what the problem's wording says about the form of the answer."""

    rounding: Rounding = "reference_precision"
    missing_unit: MissingUnit = "pass"
    problem: str = ""

    @cached_property
    def percent(self) -> bool:
        """The problem speaks of a percentage."""
        return bool(_PERCENT.search(self.problem))

    @cached_property
    def degrees(self) -> bool:
        """It asks for degrees, so that a bare pi/6 is no radian."""
        return bool(_DEGREES.search(self.problem))

    @cached_property
    def ordered(self) -> bool:
        """Order matters in lists."""
        return bool(_ORDER.search(self.problem))


@dataclass(frozen=True, slots=True)
class Match:
    """``equal`` None: undecided. ``method`` names the rule that decided."""

    equal: bool | None
    method: str
    confidence: float = 1.0


Same: TypeAlias = Callable[[Node, Node, Terms], Match]
"""The whole comparison, for the members of what a rule takes apart."""

Rule: TypeAlias = Callable[[Node, Node, Terms, Same], Match | None]
"""None: neither side is of the rule's kind."""


def first_true(matches: list[Match]) -> Match:
    for match in matches:
        if match.equal:
            return match
    undecided = [match for match in matches if match.equal is None]
    return undecided[0] if undecided else matches[0]
