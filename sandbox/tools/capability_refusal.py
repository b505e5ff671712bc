"""Detects capability refusals: answers in which the model says that it lacks the ability or the tools to answer.

``stages.rollout`` uses this module. Tool results that were invented from a schema may cause such a refusal. In this
case the dialogue is repeated, and a model writes the tool results.
"""

from __future__ import annotations

import re

_CANNOT = re.compile(
    r"\b(?:i(?:'m| am)? (?:sorry,? )?(?:but )?(?:i )?)?"
    r"(?:can(?:'t|not| not)|could(?:n't| not)|(?:am|'m|was|were) (?:not able|unable)"
    r"|do(?:n't| not) have (?:the )?(?:access|ability|tools?|means|information|data|real-time))\b",
    re.IGNORECASE,
)
_MEANS = re.compile(
    r"\b(?:access|tools?|functions?|retriev\w*|find|look(?:ing)? up|obtain|get|fetch|information|data|real-time"
    r"|results?|provide|complete|determine|ability)\b",
    re.IGNORECASE,
)


def says_it_cannot(text: str) -> bool:
    """Return True for text like "I'm sorry, I don't have access to flight data".

    Only the first three sentences are checked.
    """
    opening = " ".join(re.split(r"(?<=[.!?])\s+", text.replace("’", "'").strip())[:3])[:600]
    match = _CANNOT.search(opening)
    return bool(match) and bool(re.search(r"\bi\b|i'm", opening, re.IGNORECASE)) and bool(_MEANS.search(opening))
