"""Counts and sums over all candidates of a run. ``analysis.run_figures`` adds each query to them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from bestofn.builders.analysis.query_records import CandidateRecord
from bestofn.builders.errors import kind_of
from bestofn.builders.statistics.descriptive import share


@dataclass(slots=True)
class Total:
    """Sums values that may be None. ``known`` counts the values that are not None."""

    sum: float = 0.0
    known: int = 0

    def add(self, values: Sequence[float | None]) -> None:
        """Add all ``values`` that are not None."""
        for value in values:
            if value is not None:
                self.sum += value
                self.known += 1

    @property
    def mean(self) -> float | None:
        """The mean of the values that are not None; None if all values are None."""
        return share(self.sum, self.known)


@dataclass(slots=True)
class ModelCost:
    """Cost and tokens of all attempts of one model."""

    attempts: int = 0
    usd: Total = field(default_factory=Total)
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def add(self, attempts: Sequence[CandidateRecord]) -> None:
        """Add ``attempts`` of the model."""
        self.attempts += len(attempts)
        self.usd.add([one.cost_usd for one in attempts])
        self.prompt_tokens += sum([one.prompt_tokens or 0 for one in attempts])
        self.completion_tokens += sum([one.completion_tokens or 0 for one in attempts])


CAUSE_CHARS = 160
MOST_METHODS = 200  # kinds of verdicts that are counted separately
MOST_MODELS = 50  # models that are counted separately


def cause_of(problem: str) -> str:
    """Return the first line of ``problem``, at most ``CAUSE_CHARS`` characters, with numbers replaced by N.

    Problems of different answers that have the same cause then give equal texts.
    """
    return first_line(re.sub(r"\d+(?:\.\d+)*", "N", problem))


def first_line(problem: str) -> str:
    """Return the first line of ``problem``, at most ``CAUSE_CHARS`` characters."""
    line = problem.strip().partition("\n")[0]
    return line if len(line) <= CAUSE_CHARS else line[: CAUSE_CHARS - 1] + "…"


@dataclass
class CandidateTotals:
    """Counts and sums over all candidates: refusals, quality and cost."""

    refusals: Counter[str] = field(default_factory=Counter)  # kind of refusal -> number of candidates
    empty: int = 0
    short: int = 0
    truncated: int = 0
    repeats: int = 0
    not_taught: Counter[str] = field(default_factory=Counter)  # reason -> answers that are in no training table
    failures: Counter[str] = field(default_factory=Counter)  # kind of error -> candidates without an answer
    first_failure: str = ""  # the error of the first candidate without an answer
    without_reward: int = 0  # candidates that have an answer and no reward
    reward_problems: Counter[str] = field(
        default_factory=Counter
    )  # the reasons of these, without numbers and addresses
    reward_examples: dict[str, str] = field(default_factory=dict)  # such a reason -> the first one with its numbers
    judged: Counter[bool] = field(default_factory=Counter)  # whether the judge failed -> candidates it was asked about
    judge_decided: int = 0  # candidates whose verdict is that of the judge
    methods: Counter[tuple[str, str]] = field(default_factory=Counter)  # (verifier and method, outcome) -> candidates
    characters: Total = field(default_factory=Total)
    seconds: Total = field(default_factory=Total)
    models: dict[tuple[str, str], ModelCost] = field(default_factory=dict)  # (role, model) -> its cost
    usd: Total = field(default_factory=Total)  # cost of the answers
    judging_usd: Total = field(default_factory=Total)  # cost of judges and rewards
    estimated: int = 0  # answers without a token count, whose cost is estimated
    unpriced: int = 0  # answers with a token count and without a price
    prompt_tokens: Total = field(default_factory=Total)
    completion_tokens: Total = field(default_factory=Total)

    def add(self, candidates: Sequence[CandidateRecord]) -> None:
        """Add ``candidates`` to the counts and sums."""
        self.refusals.update([one.refusal for one in candidates if one.refusal is not None])
        self.empty += sum([one.empty for one in candidates])
        self.short += sum([one.short for one in candidates])
        self.truncated += sum([one.truncated for one in candidates])
        self.not_taught.update([one.not_taught for one in candidates if one.not_taught and not one.empty])
        self.repeats += sum([one.repeat for one in candidates])
        failures = [one.failure for one in candidates if one.failure]
        self.failures.update(map(kind_of, failures))
        self.first_failure = self.first_failure or next(iter(failures), "")
        self.without_reward += sum([one.reward is None and not one.failure for one in candidates])
        for problem in [one.reward_problem for one in candidates if one.reward_problem]:
            self.reward_problems[cause_of(problem)] += 1
            self.reward_examples.setdefault(cause_of(problem), first_line(problem))
        self.judged.update([one.judge_failed for one in candidates if one.judge_failed is not None])
        self.judge_decided += sum([one.judge_decided for one in candidates])
        for key in [(one.decided_by, one.outcome) for one in candidates]:
            self.methods[key if key in self.methods or len(self.methods) < MOST_METHODS else ("others", key[1])] += 1
        self.characters.add([one.characters for one in candidates])
        self.seconds.add([one.seconds for one in candidates])

    @property
    def outcomes_by_method(self) -> dict[str, Counter[str]]:
        """The number of candidates per method and outcome: {verifier and method: {outcome: number}}.

        The most frequent method is first.
        """
        methods: dict[str, Counter[str]] = {}
        for (method, outcome), count in self.methods.items():
            methods.setdefault(method, Counter())[outcome] += count
        return dict(sorted(methods.items(), key=lambda item: (-item[1].total(), item[0])))

    @property
    def total_usd(self) -> float | None:
        """The cost of the run in dollars, with judges, rewards and simulated tools; None if no price is known."""
        known = self.usd.known or self.judging_usd.known
        return self.usd.sum + self.judging_usd.sum if known else None

    def add_cost(self, attempts: Sequence[CandidateRecord]) -> None:
        """Add the cost and the tokens of ``attempts``, including attempts that a later attempt replaced."""
        self.usd.add([one.cost_usd for one in attempts])
        self.judging_usd.add([one.judging_usd for one in attempts])
        tokens = [(one.prompt_tokens or 0) + (one.completion_tokens or 0) for one in attempts]
        answered = [(one, count) for one, count in zip(attempts, tokens, strict=True) if not one.failure]
        self.estimated += sum([bool(one.cost_usd) and not count for one, count in answered])
        self.unpriced += sum([one.cost_usd is None and count > 0 for one, count in answered])
        self.prompt_tokens.add([one.prompt_tokens for one in attempts])
        self.completion_tokens.add([one.completion_tokens for one in attempts])
        keys = [(one.role, one.model) for one in attempts]
        for key in dict.fromkeys(keys):
            known = key if key in self.models or len(self.models) < MOST_MODELS else (key[0], "others")
            cost = self.models.get(known) or self.models.setdefault(known, ModelCost())
            cost.add([one for one, its_key in zip(attempts, keys, strict=True) if its_key == key])
