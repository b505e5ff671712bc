"""The settings and the result of a comparison, and the type of a rule."""

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
    """The settings of a comparison: the policies, and the form of answer that the problem asks for."""

    rounding: Rounding = "reference_precision"
    missing_unit: MissingUnit = "pass"
    problem: str = ""

    @cached_property
    def percent(self) -> bool:
        """Whether the problem mentions a percentage."""
        return bool(_PERCENT.search(self.problem))

    @cached_property
    def degrees(self) -> bool:
        """Whether the problem asks for degrees; then a bare pi/6 is not in radians."""
        return bool(_DEGREES.search(self.problem))

    @cached_property
    def ordered(self) -> bool:
        """Whether the order of lists matters."""
        return bool(_ORDER.search(self.problem))


@dataclass(frozen=True, slots=True)
class Match:
    """The result. ``equal`` is None when undecided; ``method`` names the rule that decided."""

    equal: bool | None
    method: str
    confidence: float = 1.0


Same: TypeAlias = Callable[[Node, Node, Terms], Match]
"""The whole comparison; a rule calls it for the members of a tree."""

Rule: TypeAlias = Callable[[Node, Node, Terms, Same], Match | None]
"""A rule returns None when neither side is of its kind."""


def first_true(matches: list[Match]) -> Match:
    """The first match that is equal, otherwise an undecided one, otherwise the first."""
    for match in matches:
        if match.equal:
            return match
    undecided = [match for match in matches if match.equal is None]
    return undecided[0] if undecided else matches[0]
