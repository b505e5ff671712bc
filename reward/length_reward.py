"""A penalty for long answers. ``conf/reward/length.yaml`` builds it."""

from __future__ import annotations

from collections.abc import Sequence

from bestofn.builders.records import Candidate, Query, Score, Verdict


class LengthReward:
    """0 up to ``free`` words, then minus ``per_word`` per further word, down to ``least``.

    Words are separated by white space. Tool calls have no words and cost nothing.
    """

    name = "length"

    def __init__(self, free: int = 200, per_word: float = 0.001, least: float = -1.0) -> None:
        if free < 0 or per_word < 0 or least > 0:
            raise ValueError(
                f"free is {free}, per_word is {per_word}, least is {least}; "
                "expected free ≥ 0, per_word ≥ 0 and least ≤ 0"
            )
        self.free, self.per_word, self.least = free, per_word, least

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        """The penalty of every candidate, with its number of words in ``parts``."""
        return [self._one(candidate) for candidate in candidates]

    def _one(self, candidate: Candidate) -> Score:
        if candidate.error:
            return Score(None)
        words = len(candidate.text.split())
        return Score(max(self.least, -self.per_word * max(0, words - self.free)) + 0.0, {"words": words})
