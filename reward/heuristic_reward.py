"""A reward from surface features of the text.

This reward is a baseline for comparisons and does not measure correctness.
"""

from __future__ import annotations

from collections.abc import Sequence

from bestofn.builders.records import Candidate, Query, Score, Verdict

REASONING = ("because", "therefore", "first", "then", "finally", "step")
CONCLUSIONS = ("the answer is", "answer:", "=")
DOUBTS = ("i'm not sure", "i don't know", "might be")


class HeuristicReward:
    """Scores surface features of the text, from 0 to 1.

    The score starts at 0.5. Medium length, reasoning words and a stated answer raise the score. Short texts, repetition
    and expressions of doubt lower it. Words are matched as substrings of the lower-case text, so "then" also matches
    "strengthen". The rules never change, so scores of different runs can be compared.
    """

    name = "heuristic"

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        """Return one score per candidate. The value is None if the candidate has an error."""
        return [Score(heuristic(candidate.text)) if not candidate.error else Score(None) for candidate in candidates]


def heuristic(text: str) -> float:
    """Return the heuristic score of ``text``, from 0 to 1."""
    low = text.lower()
    words = low.split()
    value = 0.5
    if 50 < len(text) < 500:
        value += 0.1
    elif len(text) < 20:
        value -= 0.2
    value += 0.05 * sum(word in low for word in REASONING)
    if any(mark in low for mark in CONCLUSIONS):
        value += 0.1
    if len(set(words)) / max(len(words), 1) < 0.5:
        value -= 0.2
    if any(doubt in low for doubt in DOUBTS):
        value -= 0.1
    return max(0.0, min(1.0, round(value, 10)))
