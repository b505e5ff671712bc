"""Types for the comparison rules: the settings, the result, and the signature of a rule."""

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
    """The settings of a comparison: the rounding and unit policies, and the text of the problem."""

    rounding: Rounding = "reference_precision"
    missing_unit: MissingUnit = "pass"
    problem: str = ""

    @cached_property
    def percent(self) -> bool:
        """True if the problem mentions a percentage."""
        return bool(_PERCENT.search(self.problem))

    @cached_property
    def degrees(self) -> bool:
        """True if the problem asks for degrees. Then pi/6 with no degree sign is not converted from radians."""
        return bool(_DEGREES.search(self.problem))

    @cached_property
    def ordered(self) -> bool:
        """True if the problem asks for values in a certain order."""
        return bool(_ORDER.search(self.problem))


@dataclass(frozen=True, slots=True)
class Match:
    """The result of a comparison. ``equal`` is None if undecided; ``method`` describes the rule that decided."""

    equal: bool | None
    method: str
    confidence: float = 1.0


Same: TypeAlias = Callable[[Node, Node, Terms], Match]
"""The function that applies all rules. A rule calls it to compare parts of the trees."""

Rule: TypeAlias = Callable[[Node, Node, Terms, Same], Match | None]
"""A comparison rule. It returns None if it does not apply to the two trees."""


def first_true(matches: list[Match]) -> Match:
    """Return the first equal match, otherwise the first undecided match, otherwise the first match."""
    for match in matches:
        if match.equal:
            return match
    undecided = [match for match in matches if match.equal is None]
    return undecided[0] if undecided else matches[0]
