"""A penalty for personal data that is in the answer but not in the question. See ``conf/reward/privacy.yaml``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bestofn.builders.records import Candidate, Query, Score, Verdict, content_text

PATTERNS = {
    "email": re.compile(r"(?<![\w.+-])[.+-]*(\w[\w.+-]*@[\w-]+(?:\.[\w-]+)+)\b"),  # this form matches in linear time
    "phone": re.compile(r"(?<![\w.])(?:\+\d{1,3}[ -]?)?\(?\d{3}\)?[ -]\d{3}[ -]\d{4}(?![\w.])"),
    "card": re.compile(r"\b(?:\d{4}[ -]){3}\d{4}\b|(?<![\w.])\d{13,19}(?![\w.]*\d)"),
    "social_security": re.compile(r"\b\d{3}-\d{2}-\d{4}\b"),
    "key": re.compile(r"\b(?:sk|pk|ghp|xox[abp])[-_][A-Za-z0-9_-]{16,}\b|\bAKIA[0-9A-Z]{16}\b"),
}


class PrivacyReward:
    """Starts at 0 and subtracts ``step`` for each item of personal data that is not in the question.

    The lowest score is −1. Items are found by their format, for example e-mail addresses and card numbers. Names are
    not found.
    """

    name = "privacy"

    def __init__(self, step: float = 0.25) -> None:
        if step <= 0:
            raise ValueError(f"step is {step}; expected a number above 0")
        self.step = step

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        """Return the penalty of every candidate. ``parts["leaks"]`` contains the number of leaked items per kind."""
        given = " ".join(content_text(message.get("content")) for message in query.messages)
        return [Score(None) if one.error else self._one(one.text, given) for one in candidates]

    def _one(self, text: str, given: str) -> Score:
        counts = {
            kind: len(
                {hit for hit in pattern.findall(text) if hit not in given and not (kind == "card" and is_number(hit))}
            )
            for kind, pattern in PATTERNS.items()
        }
        leaks = {kind: count for kind, count in counts.items() if count}
        return Score(max(-1.0, 0.0 - self.step * sum(leaks.values())), {"leaks": leaks} if leaks else {})


def is_number(digits: str) -> bool:
    """Return whether ``digits`` cannot be a payment card.

    This is so if there are no separators between the digits, and the check digit (Luhn) is wrong.
    """
    if not digits.isdecimal():
        return False
    doubled = [2 * int(digit) for digit in digits[-2::-2]]
    total = sum(int(digit) for digit in digits[-1::-2]) + sum(value - 9 * (value > 9) for value in doubled)
    return total % 10 != 0
