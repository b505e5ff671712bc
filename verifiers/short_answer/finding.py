"""The result of a comparison, and the confidence of each rule."""

from __future__ import annotations

from dataclasses import dataclass

from bestofn.builders.records import Outcome

CONFIDENCE = {
    "equal": 0.99,
    "same formula": 0.98,
    "same truth value": 0.95,
    "same date": 0.97,
    "same quantity": 0.95,
    "stated in the answer": 0.97,
    "same name": 0.95,
    "last name": 0.9,
    "same words in another order": 0.9,
    "same list": 0.95,
    "same option": 0.95,
    "another option": 0.9,
    "another formula": 0.95,
    "another truth value": 0.95,
    "another date": 0.97,
    "another quantity": 0.95,
    "another name": 0.97,
    "another short text": 0.95,
    "another list": 0.9,
    "another order": 0.9,
    "another of the same kind": 0.95,
}
"""The confidence of a verdict per rule. A rule that is not listed abstains."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one comparison, the rule that decided (``method``), and the part of the answer that it used."""

    outcome: Outcome
    method: str
    answer: str = ""
    reference: str = ""

    @property
    def confidence(self) -> float:
        """The confidence of the rule; 0 if the outcome is not ``pass`` or ``fail``."""
        return CONFIDENCE[self.method] if self.outcome in ("pass", "fail") else 0.0
