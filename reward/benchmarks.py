"""Runs a reward on the published benchmarks of reward models: ``bestofn benchmark reward``.

``shapes`` of the rows: ``reward_bench_2`` (RewardBench 2), ``rm_bench`` (RM-Bench), ``judge_bench`` (JudgeBench) and
``rmb`` (RMB, its pairs and its best-of-n rows). ``benchmark_scores`` computes the scores.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bestofn.builders.concurrency.tasks import run_together
from bestofn.builders.errors import ConfigError, row_boundary
from bestofn.builders.formats.missing_scores import RewardHealth, finite_scores
from bestofn.builders.protocols import Reward
from bestofn.builders.records import Candidate, JsonObject, Message, Query, Row, Score, Verdict
from bestofn.reward.benchmark_scores import Margins, best_of_credit, style_accuracies, ties_score

SHAPES = ("reward_bench_2", "rm_bench", "judge_bench", "rmb")
AT_ONCE = 32  # rows in flight
UNKNOWN = Verdict("abstain", 0.0, "a benchmark row", "benchmark")


class BenchmarkRow(NamedTuple):
    """One row: the prompt, the right and the wrong answers, and the group whose score includes the row."""

    id: str
    messages: tuple[Message, ...]
    right: list[str]
    wrong: list[str]
    group: str


@dataclass
class BenchmarkScores:
    """The scores of a reward on a benchmark, by the name of the score.

    ``unscored`` is the number of rows in which an answer has no value. ``reason`` says why in one of these rows.
    """

    scores: dict[str, float] = field(default_factory=dict)
    rows: int = 0
    unscored: int = 0
    reason: str = ""


def read_row(shape: str, row: Row, number: int) -> BenchmarkRow:
    """Read one row in its published form. Raises ``ConfigError`` if the row has an unknown form."""
    try:
        return _READERS[shape](row, str(row.get("id", number)))
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ConfigError(
            f"row {number} does not have the form of {shape} ({type(error).__name__}: {error}). Its keys are "
            f"{', '.join(map(str, row))}. Set shape to one of {', '.join(SHAPES)}."
        ) from error


def _reward_bench_2(row: Row, name: str) -> BenchmarkRow:
    return BenchmarkRow(name, _asked(row["prompt"]), list(row["chosen"]), list(row["rejected"]), str(row["subset"]))


def _rm_bench(row: Row, name: str) -> BenchmarkRow:
    return BenchmarkRow(name, _asked(row["prompt"]), list(row["chosen"]), list(row["rejected"]), str(row["domain"]))


def _judge_bench(row: Row, name: str) -> BenchmarkRow:
    first, second = row["response_A"], row["response_B"]
    right, wrong = {"A>B": (first, second), "B>A": (second, first)}[row["label"]]
    asked = _asked(row["question"] if "question" in row else row["prompt"])
    return BenchmarkRow(str(row.get("pair_id", name)), asked, [right], [wrong], str(row.get("source", "all")))


def _rmb(row: Row, name: str) -> BenchmarkRow:
    kind = "best of n" if "bon_best" in row else "pairs"
    right = row["bon_best"] if kind == "best of n" else row["chosen"]
    losers = row["loser_list"] if kind == "best of n" else [row["reject"]]
    group = f"{str(row.get('category_path', 'all')).split('/')[0]}, {kind}"
    prompt = tuple(dict(message) for message in row["conversation_input"])
    return BenchmarkRow(name, prompt, [right["answer"]], [one["answer"] for one in losers], group)


_READERS = {"reward_bench_2": _reward_bench_2, "rm_bench": _rm_bench, "judge_bench": _judge_bench, "rmb": _rmb}


def _asked(prompt: str) -> tuple[Message, ...]:
    return ({"role": "user", "content": prompt},)


async def measure(shape: str, rows: Iterable[Row], reward: Reward) -> BenchmarkScores:
    """Score the answers of all rows and return the scores of the benchmark.

    If an answer has no value, its row counts as lost: a right answer without a value ranks last, a wrong one first.
    Raises ``OutageError`` if the reward keeps failing, or gives no value at all.
    """
    read = [read_row(shape, row, number) for number, row in enumerate(rows, start=1)]
    found, free, health = BenchmarkScores(rows=len(read)), asyncio.Semaphore(AT_ONCE), RewardHealth(reward.name)

    async def values(row: BenchmarkRow) -> tuple[list[float], list[float]]:
        async with free:
            return await _values(row, reward, found, health)

    scored = list(zip(read, await run_together(map(values, read)), strict=True))
    health.check_works()
    found.scores = _rm_bench_scores(scored) if shape == "rm_bench" else _group_scores(shape, scored)
    return found


Scored = Sequence[tuple[BenchmarkRow, tuple[list[float], list[float]]]]


def _group_scores(shape: str, scored: Scored) -> dict[str, float]:
    """Return the score per group, and ``overall``. In RMB and JudgeBench, a tie counts as wrong.

    ``overall`` is the mean of the groups, except in JudgeBench: there it is the mean of all rows.
    """
    credits: dict[str, list[float]] = {}
    ties: dict[str, dict[str, Margins]] = {"ref": {}, "tied": {}}
    for row, (right, wrong) in scored:
        kind, _, prompt = row.id.partition(":")
        if shape == "reward_bench_2" and row.group == "Ties" and kind in ties:
            ties[kind][prompt] = Margins.of(right, wrong)
        elif shape == "reward_bench_2":
            credits.setdefault(row.group, []).append(best_of_credit(right, wrong))
        else:
            credits.setdefault(row.group, []).append(float(min(right) > max(wrong)))
    groups = {group: sum(given) / len(given) for group, given in sorted(credits.items())}
    parts: dict[str, float] = {}
    if ties["ref"] or ties["tied"]:
        parts = ties_score(ties["ref"], ties["tied"])
        groups["Ties"] = parts.pop("score")
    if shape == "judge_bench":
        everything = [credit for given in credits.values() for credit in given]
        overall = sum(everything) / max(1, len(everything))
    else:
        overall = sum(groups.values()) / max(1, len(groups))
    return {**groups, **{f"Ties {name}": value for name, value in parts.items()}, "overall": overall}


def _rm_bench_scores(scored: Scored) -> dict[str, float]:
    """Return the mean accuracy per domain, per difficulty and overall. The two parts of ``safety`` are one domain."""
    rows: dict[str, list[tuple[list[float], list[float]]]] = {}
    for row, values in scored:
        rows.setdefault(row.group, []).append(values)
    styles = {group: style_accuracies(values) for group, values in sorted(rows.items())}
    domains: dict[str, list[Mapping[str, float]]] = {}
    for group, accuracies in styles.items():
        domains.setdefault(group.partition("-")[0], []).append(accuracies)
    names = ("easy", "normal", "hard", "average")
    means = {
        domain: {name: sum(one[name] for one in halves) / len(halves) for name in names}
        for domain, halves in domains.items()
    }
    overall = {name: sum(one[name] for one in means.values()) / max(1, len(means)) for name in names}
    return {**{domain: one["average"] for domain, one in means.items()}, **overall, "overall": overall["average"]}


async def _values(
    row: BenchmarkRow, reward: Reward, found: BenchmarkScores, health: RewardHealth
) -> tuple[list[float], list[float]]:
    """Return the values of the right and of the wrong answers. A missing value counts as the wrong decision."""
    texts = [*row.right, *row.wrong]
    candidates = [Candidate(place, ({"role": "assistant", "content": text},)) for place, text in enumerate(texts)]
    scores: list[Score] = []
    with row_boundary() as failure:
        query = Query(row.id, "chat", row.messages)
        scores = finite_scores(await reward.score(query, candidates, [UNKNOWN] * len(candidates)))
    if failure.error:
        scores = [Score(None, {"error": failure.message})] * len(candidates)
    health.count(candidates, scores)
    known = [score.value for score in scores if score.value is not None]
    if len(known) < len(scores):
        found.unscored += 1
        missing = next(score for score in scores if score.value is None)
        found.reason = found.reason or str(missing.parts.get("error") or "the reward gave no value")
    low, high = min(known, default=0.0) - 1.0, max(known, default=0.0) + 1.0
    filled = [
        score.value if score.value is not None else low if place < len(row.right) else high
        for place, score in enumerate(scores)
    ]
    return filled[: len(row.right)], filled[len(row.right) :]


def lines_of(found: BenchmarkScores) -> Iterator[str]:
    """Yield the scores as lines of text, and a warning about rows without values."""
    for name, value in found.scores.items():
        yield f"{name:<28} {value:.3f}"
    yield f"{found.rows:,} rows"
    if found.unscored:
        yield f"{found.unscored:,} rows have an answer without a value and count as lost: {found.reason[:300]}"


def as_json(found: BenchmarkScores) -> JsonObject:
    """Return the scores as plain data."""
    return {"scores": found.scores, "rows": found.rows, "unscored": found.unscored, "reason": found.reason}
