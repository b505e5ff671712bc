"""A tournament of the siblings: a judge compares two at a time, in both orders."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence

from bestofn.builders.errors import ConfigError
from bestofn.builders.formats.judge_reply import candidate_text, fenced, object_schema
from bestofn.builders.protocols import Sampler
from bestofn.builders.records import Candidate, Query, Score, Verdict
from bestofn.reward import judging
from bestofn.reward.bradley_terry import win_chances
from bestofn.reward.conflicts import conflicts
from bestofn.reward.rubrics import rubric_text

SCHEMA = object_schema(reasoning={"type": "string"}, better={"type": "string", "enum": ["answer_1", "answer_2", "tie"]})


class PairwiseReward:
    """The chance to beat a sibling, by Bradley–Terry over the comparisons.

    Each pair is asked in both orders, and a verdict that changes with the order is a tie. With ``opponents`` each
    candidate meets only that many of the following ones in a ring: n · opponents pairs instead of n(n−1)/2. A candidate
    whose comparisons all failed has no value. ``parts`` holds wins, comparisons and order-dependent verdicts.
    """

    name = "pairwise"

    def __init__(
        self, judge: Sampler, rubric: str = "helpfulness", opponents: int | None = None, max_tokens: int = 1024
    ) -> None:
        if opponents is not None and opponents < 1:
            raise ConfigError(f"opponents is {opponents}; expected at least 1, or null for all")
        self.judge, self.rubric = judge, rubric_text(rubric)
        self.opponents, self.max_tokens = opponents, max_tokens

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        alive = [place for place, candidate in enumerate(candidates) if not candidate.error]
        texts = [candidate_text(candidates[place]) for place in alive]
        orders = [order for a, b in schedule(len(alive), self.opponents) for order in ((a, b), (b, a))]
        found = await asyncio.gather(*(self._first_wins(query, texts[a], texts[b]) for a, b in orders))
        first_wins = {order: result for order, result in zip(orders, found, strict=True) if result is not None}
        scored = tournament(len(alive), first_wins)
        scores = [Score(None)] * len(candidates)
        for place, score in zip(alive, scored, strict=True):
            scores[place] = score
        return scores

    async def _first_wins(self, query: Query, first: str, second: str) -> float | None:
        if first == second:
            return 0.5
        material = fenced(question=judging.conversation_text(query), **judging.numbered([first, second]))
        instruction = (
            f"Which answer is better?\n\nWhat to look at: {self.rubric}\n\nThe order means nothing. First reason "
            'briefly, then decide. Reply: {"reasoning": "…", "better": "answer_1" or "answer_2" or "tie"}'
        )
        request = judging.request_for(instruction, material, SCHEMA, 0.0, self.max_tokens)
        (reply,) = await judging.replies(self.judge, request, 1)
        choice = reply.get("better") if isinstance(reply, dict) else None
        return {"answer_1": 1.0, "answer_2": 0.0, "tie": 0.5}.get(str(choice))


def schedule(n: int, opponents: int | None = None) -> list[tuple[int, int]]:
    """The pairs to compare, each once: all, or each with the next ``opponents`` of a ring."""
    if opponents is None or 2 * opponents >= n - 1:
        return list(itertools.combinations(range(n), 2))
    return sorted({tuple(sorted((i, (i + step) % n))) for i in range(n) for step in range(1, opponents + 1)})  # type: ignore[misc]


def tournament(n: int, first_wins: dict[tuple[int, int], float]) -> list[Score]:
    """Scores of ``n`` siblings from (first, second) → 1, 0 or ½; verdicts that change with the order are ties."""
    wins = [[0.0] * n for _ in range(n)]
    met = [0] * n
    shaky = [0] * n
    for a, b in {tuple(sorted(order)) for order in first_wins}:
        said = [first_wins[a, b]] if (a, b) in first_wins else []
        said += [1 - first_wins[b, a]] if (b, a) in first_wins else []
        result = said[0] if len(set(said)) == 1 else 0.5
        wins[a][b] += result
        wins[b][a] += 1 - result
        for side in (a, b):
            met[side] += 1
            shaky[side] += len(set(said)) > 1
    chances = win_chances(wins)
    found = conflicts(n, first_wins)
    return [
        Score(
            chances[i] if met[i] or n == 1 else None,
            {"wins": sum(wins[i]), "comparisons": met[i], "order_dependent": shaky[i], "cycles": len(found.cycles)}
            if met[i] or n == 1
            else {"error": "no comparison could be read"},
        )
        for i in range(n)
    ]
