"""Finds answers that the parser read only in part, or that state values of several persons or things."""

from __future__ import annotations

import re

from bestofn.verifiers.math_verifier.answer import Answer
from bestofn.verifiers.math_verifier.literals import Unsupported
from bestofn.verifiers.math_verifier.normal import normal
from bestofn.verifiers.math_verifier.syntax import parse

_VALUE = re.compile(
    r"[\d=]|\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thir\w+|fif\w+|twenty|hundred)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")
MAX_LENGTH = 300  # maximum length of a sentence; a longer text is usually a derivation without an end
_AFTER_DASH = re.compile(r"\d\s+[–—]\s+.*\d")
_OF_NAME = re.compile(
    r"\b([A-Z][a-z]+)\b[\s*:=]*(?:(?:has|had|gets?|got|pays?|paid|earns?|makes?|receives?|owns?|is|was)\b)?"
    r"[\s*:=$\\]*(-?\d[\d,.]*)"
)


def has_unread_value(text: str) -> bool:
    """Return whether ``text`` has a value after the part that the parser reads, as in ``2, 3, 5, so three primes``."""
    if len(text) > MAX_LENGTH:
        return False
    try:
        _, tail = parse(normal(text))
    except Unsupported:
        return False
    if _WORD.search(tail) and _VALUE.search(tail):
        return True
    return _AFTER_DASH.search(text) is not None


def states_values_of_several(answer: Answer, problem: str) -> bool:
    """Return whether one sentence or list gives different values to two names of the problem: ``Ann 2 and Bob 3``."""
    text = f"{answer.before} {answer.text}"
    found = [match for match in _OF_NAME.finditer(text) if match[1] in problem]
    if len(found) < 2:
        return False
    first, last = found[-2:]
    between = text[first.end() : last.start()]
    return first[1] != last[1] and first[2].strip(".,") != last[2].strip(".,") and not re.search(r"[.;!?]\s", between)
