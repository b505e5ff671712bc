"""A penalty for long answers. Configured by ``conf/reward/length.yaml``."""

from __future__ import annotations

from collections.abc import Sequence

from bestofn.builders.records import Candidate, Query, Score, Verdict


class LengthReward:
    """Scores 0 for up to ``free`` words, and subtracts ``per_word`` for each further word. The minimum is ``least``.

    Words are separated by white space. Tool calls do not count as words.
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
        """Return the penalty of every candidate. ``parts["words"]`` is the number of words."""
        return [self._one(candidate) for candidate in candidates]

    def _one(self, candidate: Candidate) -> Score:
        if candidate.error:
            return Score(None)
        words = len(candidate.text.split())
        return Score(max(self.least, -self.per_word * max(0, words - self.free)) + 0.0, {"words": words})
