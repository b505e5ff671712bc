"""The result of a comparison."""

from __future__ import annotations

from dataclasses import dataclass

from bestofn.builders.records import Outcome


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one comparison, the rule that decided (``method``), and the part of the answer that it used."""

    outcome: Outcome
    method: str
    answer: str = ""
    reference: str = ""
