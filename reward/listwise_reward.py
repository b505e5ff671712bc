"""A reward from rankings: a judge model ranks short lists of siblings, best first.

Siblings are the answers to the same query. Configured by ``conf/reward/listwise.yaml``.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

from bestofn.builders.errors import ConfigError
from bestofn.builders.formats.judge_reply import candidate_text, fenced, object_schema
from bestofn.builders.protocols import PlannedCalls, Sampler
from bestofn.builders.records import Candidate, Query, Score, Verdict
from bestofn.reward import judging
from bestofn.reward.bradley_terry import win_chances
from bestofn.reward.rubrics import rubric_text

SCHEMA = object_schema(
    reasoning={"type": "string"}, ranking={"type": "array", "items": {"type": "integer", "minimum": 1}}
)


class ListwiseReward:
    """Scores each answer with the probability that it beats a random sibling.

    A Bradley–Terry model estimates this probability from rankings of short lists. In each of ``rounds`` rounds, the
    siblings are shuffled and split into lists of at most ``list_size``. ``seed`` and the query id determine the order.
    Each candidate is in one list per round, so at least two rounds are needed to compare candidates across lists.
    A reply that is not a permutation of its list is ignored.
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
            raise ConfigError(
                f"list_size is {list_size} and rounds is {rounds}; expected list_size of at least 2 and "
                "rounds of at least 1"
            )
        self.judge, self.rubric = judge, rubric_text(rubric)
        self.list_size, self.rounds, self.seed, self.max_tokens = list_size, rounds, seed, max_tokens

    def planned_calls(self, query: Query, candidates: int) -> Sequence[PlannedCalls]:
        """Return one call per list and round."""
        count = self.rounds * -(-candidates // self.list_size)
        return [PlannedCalls(self.judge, count, count, self.max_tokens)]

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        """Rank the candidates in lists and return one score per candidate. An error gives the value None."""
        valid = [place for place, candidate in enumerate(candidates) if not candidate.error]
        lists = shuffled_lists(valid, self.list_size, self.rounds, f"{self.seed}:{query.id}")
        orders = await asyncio.gather(*(self._order(query, [candidates[i] for i in part]) for part in lists))
        rankings = [[part[place] for place in order or ()] for part, order in zip(lists, orders, strict=True)]
        wins = wins_of(rankings, len(candidates))
        ranked = {place for ranking in rankings for place in ranking} | (set(valid) if len(valid) == 1 else set())
        chances = dict(zip(valid, win_chances([[wins[i][j] for j in valid] for i in valid]), strict=True))
        return [
            Score(chances[i], {"lists": self.rounds})
            if i in ranked
            else Score(None, {} if candidates[i].error else {"error": "no ranking of this answer could be read"})
            for i in range(len(candidates))
        ]

    async def _order(self, query: Query, part: Sequence[Candidate]) -> list[int] | None:
        """Ask the judge to rank ``part``. Return the indices in ``part``, best first; None if the reply is invalid."""
        texts = [candidate_text(candidate) for candidate in part]
        material = fenced(question=judging.conversation_text(query), **judging.numbered(texts))
        instruction = (
            f"Put the {len(part)} answers in order, the best first.\n\nWhat to look at: {self.rubric}\n\nThe order in "
            'which they stand means nothing. First reason briefly. Reply: {"reasoning": "…", "ranking": [numbers]}'
        )
        (reply,) = await judging.ask(self.judge, material, instruction, SCHEMA, max_tokens=self.max_tokens)
        return None if isinstance(reply, str) else permutation(reply.get("ranking"), len(part))


def wins_of(rankings: Sequence[Sequence[int]], n: int) -> list[list[float]]:
    """Return a table ``wins`` of ``n`` × ``n``: ``wins[i][j]`` is how often candidate i is ranked above candidate j."""
    wins = [[0.0] * n for _ in range(n)]
    for ranking in rankings:
        for above, better in enumerate(ranking):
            for worse in ranking[above + 1 :]:
                wins[better][worse] += 1
    return wins


def shuffled_lists(items: Sequence[int], size: int, rounds: int, seed: str) -> list[list[int]]:
    """Shuffle ``items`` in each of ``rounds`` rounds, and split them into lists of nearly equal length.

    Each list has 2 to ``size`` items. Exception: with ``size`` 2 and an odd number of items, one list has 3 items.
    Returns the lists of all rounds; [] for fewer than 2 items.
    """
    if len(items) < 2:
        return []
    lists = []
    count = min(-(-len(items) // size), len(items) // 2)
    for turn in range(rounds):
        order = list(items)
        random.Random(f"{seed}:{turn}").shuffle(order)
        lists += [order[start::count] for start in range(count)]
    return lists


def permutation(value: object, n: int) -> list[int] | None:
    """Return ``value`` as 0-based indices if it is a permutation of 1…``n``, otherwise None."""
    if not isinstance(value, list) or not all(isinstance(item, int) and not isinstance(item, bool) for item in value):
        return None
    return [item - 1 for item in value] if sorted(value) == list(range(1, n + 1)) else None
