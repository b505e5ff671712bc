"""An example of your own reward: answers with fewer words score higher."""

from collections.abc import Sequence

from bestofn.builders.records import Candidate, Query, Score, Verdict


class BrevityReward:
    """Scores answers by their number of words: 1 for an empty answer, 0 for ``longest`` words or more."""

    name = "brevity"

    def __init__(self, *, longest: int = 100) -> None:
        self.longest = longest

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        words = [len(candidate.text.split()) for candidate in candidates]
        return [Score(max(0.0, 1 - count / self.longest)) for count in words]
