"""A penalty for repeated phrases. Configured by ``conf/reward/repetition.yaml``."""

from __future__ import annotations

from collections.abc import Sequence

from bestofn.builders.records import Candidate, Query, Score, Verdict


class RepetitionReward:
    """Scores an answer from 0 (no repeated phrase) down to almost −1 (nearly all phrases are repeated).

    The score is the negative of ``repeated_share``. A phrase is a sequence of ``n`` words.
    """

    name = "repetition"

    def __init__(self, n: int = 3) -> None:
        if n < 1:
            raise ValueError(f"n is {n}; expected at least 1")
        self.n = n

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        """Return the penalty of every candidate. The value is None if the candidate has an error."""
        return [Score(None) if one.error else Score(0.0 - repeated_share(one.text, self.n)) for one in candidates]


def repeated_share(text: str, n: int) -> float:
    """Return the share of word n-grams in ``text`` that already occurred before.

    The result is 0.0 if the text has fewer than ``n`` words.
    """
    words = text.lower().split()
    grams = [tuple(words[start : start + n]) for start in range(len(words) - n + 1)]
    return 1.0 - len(set(grams)) / len(grams) if grams else 0.0
