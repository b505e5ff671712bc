"""Types for the comparison rules: the settings, the result, and the signature of a rule."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal, TypeAlias

from bestofn.verifiers.math_verifier.forms import Form, form
from bestofn.verifiers.math_verifier.nodes import Node
from bestofn.verifiers.math_verifier.rounding import Rounding

MissingUnit = Literal["pass", "abstain", "fail"]


_PERCENT = re.compile(r"%|percent", re.IGNORECASE)
_SCALE = re.compile(r"\b(?:hundred|thousand|million|billion|trillion)s?\b|\$?\d\s?[kKM]\b|\b(?:mn|bn)\b", re.IGNORECASE)
_DOLLARS = re.compile(r"\$\s?\d|dollar|USD", re.IGNORECASE)
_DEGREES = re.compile(r"\b(?:in|of|many) degrees\b|degree measure", re.IGNORECASE)
_ORDER = re.compile(
    r"\b(?:in (?:increasing|decreasing|ascending|descending|that) order|respectively|from (?:least|smallest"
    r"|greatest|largest)|(?:sort|arrange)\b(?=.*\d)"
    r"|ordered(?! (?:\$|pairs?|triples?|triplets?|quadruples?|quintuples?|tuples?|sets?)))\b",
    re.IGNORECASE,
)
_NUMERAL = re.compile(r"\d+(?:[.,]\d+)*")
_INTERVAL = re.compile(
    r"\b(?:intervals?|range|domain|values of|inequalit\w*|set of (?:all|real)|increasing|decreasing)\b", re.IGNORECASE
)


@dataclass(frozen=True)
class Terms:
    """The settings of a comparison: the rounding and unit policies, and the text of the problem."""

    rounding: Rounding = "reference_precision"
    missing_unit: MissingUnit = "pass"
    problem: str = ""
    sets: bool = False  # the values are compared as sets of real numbers, as in ``x in [0, 1]``

    @cached_property
    def percent(self) -> bool:
        """True if the problem mentions a percentage."""
        return bool(_PERCENT.search(self.problem))

    @cached_property
    def money(self) -> bool:
        """True if the problem mentions dollars."""
        return bool(_DOLLARS.search(self.problem))

    @cached_property
    def degrees(self) -> bool:
        """True if the problem asks for degrees. Then pi/6 with no degree sign is not converted from radians."""
        return bool(_DEGREES.search(self.problem))

    @cached_property
    def ordered(self) -> bool:
        """True if the problem asks for values in a certain order."""
        return bool(_ORDER.search(self.problem))

    @cached_property
    def intervals(self) -> bool:
        """True if the problem asks for a set of real numbers. Then (1, 2) is an interval and not a pair."""
        return self.sets or bool(_INTERVAL.search(self.problem))

    @cached_property
    def scale(self) -> bool:
        """True if the problem mentions a scale such as million. Then 5 can be short for 5 million."""
        return bool(_SCALE.search(self.problem))

    @cached_property
    def computed(self) -> bool:
        """True if the problem gives at least two numbers to compute with."""
        return len(_NUMERAL.findall(self.problem)) > 1

    def uses(self, letter: str) -> bool:
        """Return whether the problem uses ``letter`` as a variable in a formula. Then ``letter`` is not a unit."""
        return bool(
            re.search(
                rf"\$[^$]{{0,200}}(?<![A-Za-z\\{{]){re.escape(letter)}(?![A-Za-z}}])[^$]{{0,200}}\$", self.problem
            )
        )

    def names(self, letter: str) -> bool:
        """Return whether ``letter`` occurs in the problem as a word of its own, so that it may be a name."""
        return bool(re.search(rf"(?<![A-Za-z]){re.escape(letter)}(?![A-Za-z])", self.problem))


@dataclass(frozen=True, slots=True)
class Equal:
    """Both sides are equal. ``method`` describes the rule that decided."""

    method: str
    equal: ClassVar[Literal[True]] = True


@dataclass(frozen=True, slots=True)
class Different:
    """Both sides were understood, as the forms ``ours`` and ``theirs``, and they differ."""

    method: str
    ours: Form
    theirs: Form
    equal: ClassVar[Literal[False]] = False


@dataclass(frozen=True, slots=True)
class Unclear:
    """A side was not understood, or the rules cannot decide. ``method`` is the reason."""

    method: str
    equal: ClassVar[None] = None


@dataclass(frozen=True, slots=True)
class Doubt(Unclear):
    """The answer is undecided, and SymPy cannot decide it either, for example because the answer states two values."""


Match: TypeAlias = Equal | Different | Unclear
"""The result of a comparison. Only ``Different`` makes a ``fail``, and it needs the forms of both sides."""


def different(method: str, reference: Node, candidate: Node) -> Different | Unclear:
    """Return ``Different``, or ``Unclear`` if one of the trees contains text that is not mathematics."""
    ours, theirs = form(reference), form(candidate)
    if ours is None or theirs is None:
        return Unclear(f"{method}; words that are not mathematics")
    return Different(method, ours, theirs)


def decided(equal: bool | None, method: str, reference: Node, candidate: Node) -> Match:
    """Return ``Equal`` if ``equal`` is True, ``Unclear`` if it is None, otherwise the result of ``different``."""
    if equal is None:
        return Unclear(method)
    return Equal(method) if equal else different(method, reference, candidate)


def noted(match: Match, note: str) -> Match:
    """Return ``match`` with a note on how it was decided, such as "the unit is missing"."""
    return replace(match, method=f"{match.method}; {note}")


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
