"""A judge puts the siblings in order, a few at a time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any

from bestofn.builders.errors import ConfigError
from bestofn.builders.formats.judge_reply import candidate_text, fenced, object_schema
from bestofn.builders.protocols import Sampler
from bestofn.builders.records import Candidate, Query, Score, Verdict
from bestofn.reward import judging
from bestofn.reward.bradley_terry import win_chances
from bestofn.reward.rubrics import rubric_text

SCHEMA = object_schema(
    reasoning={"type": "string"}, ranking={"type": "array", "items": {"type": "integer", "minimum": 1}}
)


class ListwiseReward:
    """The chance to beat a sibling, by Bradley–Terry over rankings of shuffled lists of ``list_size``.

    ``rounds`` times the siblings are shuffled (by ``seed`` and the query) and cut into lists; each candidate is in one
    list a round, so two rounds or more link the lists. A reply that is no permutation of its list does not count.
    """

    name = "listwise"

    def __init__(
        self,
        judge: Sampler,
        rubric: str = "helpfulness",
        list_size: int = 4,
        rounds: int = 2,
        seed: int = 0,
        max_tokens: int = 1024,
    ) -> None:
        if list_size < 2 or rounds < 1:
            raise ConfigError(f"list_size={list_size}, rounds={rounds}; expected at least 2 and 1")
        self.judge, self.rubric = judge, rubric_text(rubric)
        self.list_size, self.rounds, self.seed, self.max_tokens = list_size, rounds, seed, max_tokens

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        alive = [place for place, candidate in enumerate(candidates) if not candidate.error]
        lists = shuffled_lists(alive, self.list_size, self.rounds, f"{self.seed}:{query.id}")
        orders = await asyncio.gather(*(self._order(query, [candidates[i] for i in part]) for part in lists))
        wins = [[0.0] * len(candidates) for _ in candidates]
        seen: set[int] = set()
        for part, order in zip(lists, orders, strict=True):
            ranked = [part[place] for place in order or ()]
            seen.update(ranked)
            for above, better in enumerate(ranked):
                for worse in ranked[above + 1 :]:
                    wins[better][worse] += 1
        alone = len(alive) == 1
        chances = dict(zip(alive, win_chances([[wins[i][j] for j in alive] for i in alive]), strict=True))
        return [
            Score(chances[i], {"lists": self.rounds})
            if i in seen or (alone and i in chances)
            else Score(None, {} if candidates[i].error else {"error": "no ranking could be read"})
            for i in range(len(candidates))
        ]

    async def _order(self, query: Query, part: Sequence[Candidate]) -> list[int] | None:
        texts = [candidate_text(candidate) for candidate in part]
        material = fenced(question=judging.conversation_text(query), **judging.numbered(texts))
        instruction = (
            f"Put the {len(part)} answers in order, the best first.\n\nWhat to look at: {self.rubric}\n\nThe order in "
            'which they stand means nothing. First reason briefly. Reply: {"reasoning": "…", "ranking": [numbers]}'
        )
        request = judging.request_for(instruction, material, SCHEMA, 0.0, self.max_tokens)
        (reply,) = await judging.replies(self.judge, request, 1)
        return permutation(reply.get("ranking"), len(part)) if isinstance(reply, dict) else None


def shuffled_lists(items: Sequence[int], size: int, rounds: int, seed: str) -> list[list[int]]:
    """``rounds`` shuffles of ``items``, each cut into lists of nearly equal length, at most ``size``, at least 2."""
    if len(items) < 2:
        return []
    lists = []
    count = min(-(-len(items) // size), len(items) // 2)
    for turn in range(rounds):
        order = list(items)
        random.Random(f"{seed}:{turn}").shuffle(order)
        lists += [order[start::count] for start in range(count)]
    return lists


def permutation(value: Any, n: int) -> list[int] | None:
    """``value`` as 0-based places when it is a permutation of 1…n, else None."""
    if not isinstance(value, list) or not all(isinstance(item, int) and not isinstance(item, bool) for item in value):
        return None
    return [item - 1 for item in value] if sorted(value) == list(range(1, n + 1)) else None
