"""A reward from a tournament: a judge model compares two siblings per request, in both orders.

Siblings are the answers to the same query. Configured by ``conf/reward/pairwise.yaml``.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence

from bestofn.builders.errors import ConfigError
from bestofn.builders.formats.judge_reply import candidate_text, fenced, object_schema
from bestofn.builders.protocols import PlannedCalls, Sampler
from bestofn.builders.records import Candidate, Query, Score, Verdict
from bestofn.reward import judging
from bestofn.reward.bradley_terry import win_chances
from bestofn.reward.conflicts import cycles
from bestofn.reward.rubrics import rubric_text

SCHEMA = object_schema(reasoning={"type": "string"}, better={"type": "string", "enum": ["answer_1", "answer_2", "tie"]})
_FIRST_WINS = {"answer_1": 1.0, "answer_2": 0.0, "tie": 0.5}


class PairwiseReward:
    """Scores each answer with the probability that it beats a random sibling.

    A Bradley–Terry model estimates this probability from comparisons. The judge compares each pair in both orders. If
    the two results differ, the pair counts as a tie. If one of them is invalid, the pair does not count. By default,
    all n(n−1)/2 pairs are compared. With ``opponents``, the candidates form a ring, and each candidate is compared with
    the next ``opponents`` candidates: n · opponents pairs in total. The value is None if no comparison of a candidate
    is valid. ``parts`` holds the numbers of wins, comparisons, preference cycles, and comparisons whose result depends
    on the order.
    """

    name = "pairwise"

    def __init__(
        self, judge: Sampler, rubric: str = "helpfulness", opponents: int | None = None, max_tokens: int = 1024
    ) -> None:
        if opponents is not None and opponents < 1:
            raise ConfigError(f"opponents is {opponents}; expected at least 1, or null to compare all pairs")
        self.judge, self.rubric = judge, rubric_text(rubric)
        self.opponents, self.max_tokens = opponents, max_tokens

    def planned_calls(self, query: Query, candidates: int) -> Sequence[PlannedCalls]:
        """Return two calls per comparison."""
        count = 2 * len(schedule(candidates, self.opponents))
        return [PlannedCalls(self.judge, count, count, self.max_tokens)]

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        """Compare the candidates and return one score per candidate. An error gives the value None."""
        valid = [place for place, candidate in enumerate(candidates) if not candidate.error]
        texts = [candidate_text(candidates[place]) for place in valid]
        orders = [order for a, b in schedule(len(valid), self.opponents) for order in ((a, b), (b, a))]
        results = await asyncio.gather(*(self._first_wins(query, texts[a], texts[b]) for a, b in orders))
        first_wins = {order: result for order, result in zip(orders, results, strict=True) if result is not None}
        scores = [Score(None)] * len(candidates)
        for place, score in zip(valid, tournament(len(valid), first_wins), strict=True):
            scores[place] = score
        return scores

    async def _first_wins(self, query: Query, first: str, second: str) -> float | None:
        """Return 1 if ``first`` is better, 0 if ``second`` is better, ½ for a tie, None if the reply is invalid."""
        if first == second:
            return 0.5
        material = fenced(question=judging.conversation_text(query), **judging.numbered([first, second]))
        instruction = (
            f"Which answer is better?\n\nWhat to look at: {self.rubric}\n\nThe order means nothing. First reason "
            'briefly, then decide. Reply: {"reasoning": "…", "better": "answer_1" or "answer_2" or "tie"}'
        )
        (reply,) = await judging.ask(self.judge, material, instruction, SCHEMA, max_tokens=self.max_tokens)
        return None if isinstance(reply, str) else _FIRST_WINS.get(str(reply.get("better")))


def schedule(n: int, opponents: int | None = None) -> list[tuple[int, int]]:
    """Return the pairs of candidates to compare; no pair is repeated.

    By default, these are all pairs of ``n`` candidates. With ``opponents``, each candidate is paired with the next
    ``opponents`` candidates in a ring.
    """
    if opponents is None or 2 * opponents >= n - 1:
        return list(itertools.combinations(range(n), 2))
    steps = [(i, (i + step) % n) for i in range(n) for step in range(1, opponents + 1)]
    return sorted({(min(pair), max(pair)) for pair in steps})


def tournament(n: int, first_wins: Mapping[tuple[int, int], float]) -> list[Score]:
    """Return the scores of ``n`` siblings from the results of their comparisons.

    ``first_wins[(a, b)]`` is the result when a is shown first: 1 if a wins, 0 if b wins, ½ for a tie. A pair counts
    only if it has a result in both orders.
    """
    wins = [[0.0] * n for _ in range(n)]
    compared = [0] * n
    order_dependent = [0] * n
    read = {order: result for order, result in first_wins.items() if order[::-1] in first_wins}
    for a, b in {(min(order), max(order)) for order in read}:
        result = read[a, b]
        differ = result != 1 - read[b, a]
        wins[a][b] += 0.5 if differ else result
        wins[b][a] += 0.5 if differ else 1 - result
        for side in (a, b):
            compared[side] += 1
            order_dependent[side] += differ
    chances = win_chances(wins)
    count = len(cycles(n, read))
    return [
        Score(
            chances[i],
            {
                "wins": sum(wins[i]),
                "comparisons": compared[i],
                "order_dependent": order_dependent[i],
                "cycles": count,
            },
        )
        if compared[i] or n == 1
        else Score(None, {"error": "no comparison of this answer could be read"})
        for i in range(n)
    ]
