"""What a comparison goes by, and what it finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from verifiers.math_verifier.nodes import Node
from verifiers.math_verifier.rounding import Rounding

MissingUnit = Literal["pass", "abstain", "fail"]


@dataclass(frozen=True, slots=True)
class Terms:
    """What the comparison goes by. ``percent``: the problem speaks of a percentage; ``degrees``: it asks for
    degrees, so a bare pi/6 is no radian; ``ordered``: order matters in lists."""

    rounding: Rounding = "reference_precision"
    missing_unit: MissingUnit = "pass"
    percent: bool = False
    degrees: bool = False
    ordered: bool = False


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
