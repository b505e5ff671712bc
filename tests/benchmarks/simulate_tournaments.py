"""Simulates how often rewards that use a judge find the best of N answers, and with how many calls.

    python tests/benchmarks/simulate_tournaments.py [repeats=400] [n=8,16,32]

The answers have standard normal qualities. The judge sees each quality with independent normal noise, drawn again for
every request. With noise of standard deviation tan(π e), the judge orders two random answers wrongly with probability e.
``ring`` and ``random lists`` are methods that bestofn does not use; they are here for comparison.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import random
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bestofn.builders.records import Candidate, Query, Score
from bestofn.reward.listwise_reward import ListwiseReward, scores_of
from bestofn.reward.pairwise_reward import PairwiseReward, tournament
from bestofn.reward.tournament import split

ERRORS = (0.0, 0.05, 0.1, 0.2, 0.3)
QUERY = Query("q", "chat", ({"role": "user", "content": "?"},))


class NoisyJudge:
    """A judge that orders answers with noise and counts its calls. The text of an answer is its quality."""

    def __init__(self, error: float, rng: random.Random) -> None:
        self.noise, self.rng, self.calls = math.tan(math.pi * error), rng, 0

    def order(self, texts: Sequence[str]) -> list[int]:
        self.calls += 1
        seen = [float(text) + self.noise * self.rng.gauss(0, 1) for text in texts]
        return sorted(range(len(texts)), key=lambda i: -seen[i])


class Pairs(PairwiseReward):
    judge: NoisyJudge  # type: ignore[assignment]

    async def _first_wins(self, query: Query, first: str, second: str) -> float | None:
        return float(self.judge.order([first, second])[0] == 0)


class Lists(ListwiseReward):
    judge: NoisyJudge  # type: ignore[assignment]

    async def _order(self, query: Query, part: Sequence[Candidate]) -> list[int] | None:
        return self.judge.order([one.text for one in part])


def ring(judge: NoisyJudge, texts: Sequence[str]) -> list[Score]:
    """Compare each answer with the next one, in both orders: 2 N calls."""
    n = len(texts)
    orders = {order for i in range(n) for order in ((i, (i + 1) % n), ((i + 1) % n, i))}
    return tournament(n, {(a, b): float(judge.order([texts[a], texts[b]])[0] == 0) for a, b in sorted(orders)})


def random_lists(judge: NoisyJudge, texts: Sequence[str]) -> list[Score]:
    """Rank random lists of at most four answers, in two rounds."""
    parts = [part for turn in range(2) for part in split(range(len(texts)), 4, f"{texts[0]}:{turn}")]
    rankings = [[part[place] for place in judge.order([texts[i] for i in part])] for part in parts if len(part) > 1]
    return scores_of(rankings, range(len(texts)), len(texts), ())


def scored(method: str, judge: NoisyJudge, texts: Sequence[str]) -> list[Score]:
    """Return the scores that ``method`` gives to ``texts``."""
    if method == "ring":
        return ring(judge, texts)
    if method == "random lists":
        return random_lists(judge, texts)
    kind, setting = method.split()
    settings = {"schedule": setting} if kind == "pairwise" else {"finals": int(setting.removeprefix("finals="))}
    reward = (Pairs if kind == "pairwise" else Lists)(judge, **settings)  # type: ignore[arg-type]
    candidates = [Candidate(i, ({"role": "assistant", "content": text},)) for i, text in enumerate(texts)]
    return asyncio.run(reward.score(QUERY, candidates, []))


METHODS = ("pairwise all", "pairwise knockout", "ring", "listwise finals=1", "listwise finals=2", "listwise finals=4",
           "random lists")  # fmt: skip


def found_best(method: str, n: int, error: float, repeats: int) -> tuple[float, float]:
    """Return how often ``method`` finds the best answer, and its mean number of calls.

    If ``method`` gives the best answer and k − 1 other answers the same highest score, the best answer counts as 1/k
    found.
    """
    hits, calls = 0.0, 0
    for repeat in range(repeats):
        rng = random.Random(f"{n}:{repeat}")
        texts = [repr(rng.gauss(0, 1)) for _ in range(n)]
        judge = NoisyJudge(error, rng)
        values = [score.value or 0.0 for score in scored(method, judge, texts)]
        first = [i for i in range(n) if values[i] == max(values)]
        hits += (max(range(n), key=lambda i: float(texts[i])) in first) / len(first)
        calls += judge.calls
    return hits / repeats, calls / repeats


def main(words: Sequence[str]) -> None:
    """Print one table row per number of answers and method."""
    settings = dict(word.split("=", 1) for word in words)
    repeats = int(settings.get("repeats", 400))
    print("| N | method | calls | " + " | ".join(f"error {error:.0%}" for error in ERRORS) + " |")
    for n, method in itertools.product(map(int, settings.get("n", "8,16,32").split(",")), METHODS):
        results = [found_best(method, n, error, repeats) for error in ERRORS]
        print(f"| {n} | {method} | {results[0][1]:.0f}–{max(calls for _, calls in results):.0f} | "
              + " | ".join(f"{share:.0%}" for share, _ in results) + " |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
