"""The result of a comparison."""

from __future__ import annotations

from dataclasses import dataclass

from bestofn.builders.records import Outcome


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one comparison, the rule that decided (``method``), and the compared part of the answer."""

    outcome: Outcome
    method: str
    answer: str = ""
    reference: str = ""
