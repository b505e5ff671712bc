"""The confidence of a finding, from the rules that decided and the form in which the answer was found.

A method consists of parts that are separated by "; ", such as "exact value; the unit is missing". The part with the
lowest confidence counts.
"""

from __future__ import annotations

from typing import Literal

Outcome = Literal["pass", "fail", "abstain"]

GUESSED = frozenset({"closing sentence", "bold", "whole text"})  # extraction methods that found no mark of the answer
MOST_IF_GUESSED = {"pass": 0.95, "fail": 0.7}
STATED = {
    "rounded value": 0.95,
    "numeric value": 0.97,
    "values at points": 0.99,
    "units converted": 0.98,
    "units converted and rounded": 0.9,
    "value of a choice": 0.95,
    "the unit is not asked for": 0.95,
    "equation up to scale": 0.98,
    "inequality up to scale": 0.98,
    "solutions of an equation": 0.95,
    "inequality at points": 0.95,
    "stated in words": 0.9,
    "another currency": 0.9,
    "hour of the day": 0.9,
    "decimal comma": 0.9,
    "both say the same": 0.9,
    "no value": 0.9,
    "a bound": 0.9,
    "symbolic": 0.9,
    "value of a numeral": 0.9,
    "the same value, repeated": 0.9,
    "letters renamed": 0.9,
    "a marked letter": 0.9,
    "unit not known": 0.8,
    "text within a sentence": 0.8,
    "the digits, without their base": 0.8,
    "the unit is missing": 0.6,
}


def confidence(outcome: Outcome, method: str, extraction: str) -> float:
    """Return the confidence of an outcome, from 0 to 1. Undecided findings have confidence 0."""
    if outcome == "abstain":
        return 0.0
    stated = min(STATED.get(part, 1.0) for part in method.split("; "))
    return min(stated, MOST_IF_GUESSED[outcome]) if extraction in GUESSED else stated
