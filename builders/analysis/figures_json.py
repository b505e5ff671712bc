"""Converts the figures of a run to JSON, for ``bestofn inspect --json`` and the dataset card."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from bestofn.builders.analysis.audit import OpinionJson
from bestofn.builders.analysis.pair_figures import PairFigures
from bestofn.builders.analysis.problems import problems
from bestofn.builders.analysis.run_figures import RunFigures
from bestofn.builders.statistics.descriptive import share
from bestofn.builders.statistics.estimators import CurvePoint
from bestofn.builders.statistics.intervals import RESAMPLES

SHOWN_METADATA = ("model", "num_candidates", "temperature", "max_tokens", "splits", "generated_at", "persona", "notes")


class RatesJson(TypedDict):
    """Rates of all queries or of one split, from 0 to 1; a rate is None if it cannot be computed for any query.

    ``rate`` is pass@1 and ``best_of_n`` is pass@k, with ``k`` as in ``pass_at``. ``picked`` is the accuracy of the
    sample with the highest reward among k. ``first`` is the pass rate of candidate 0. Candidates without a verdict of
    pass or fail count in none of these rates. ``coverage`` is the share of queries with all n samples.
    """

    queries: int
    candidates: int
    verified: int
    k: int | None
    rate: float | None
    rate_interval: tuple[float, float] | None
    best_of_n: float | None
    best_of_n_interval: tuple[float, float] | None
    picked: float | None
    picked_interval: tuple[float, float] | None
    first: float | None
    coverage: float | None


class IndexJson(TypedDict):
    """The number of candidates with one index, and of passes among them, and the share of passes among pass and fail.

    The counts use first draws (see ``QueryRecord.draws``).
    """

    records: int
    verified: int
    rate: float | None


class CurvePointJson(TypedDict):
    """One point of the pass@k curve with its 95 % interval."""

    k: int
    mean: float
    low: float
    high: float
    queries: int


class RefusalsJson(TypedDict):
    """The number of candidates that refuse to answer, in total and by kind of refusal."""

    count: int
    by_type: dict[str, int]


class QualityJson(TypedDict):
    """The number of candidates per quality problem, and the mean length of an answer in characters."""

    empty: int
    short: int
    truncated: int
    repeats: int
    errors: int
    mean_characters: float | None


class ModelCostJson(TypedDict):
    """Cost and tokens of all attempts of one model. ``role`` is "" for the run's first model."""

    model: str
    role: str
    attempts: int
    usd: float | None
    prompt_tokens: int
    completion_tokens: int


class CostJson(TypedDict):
    """Cost and tokens of all attempts of the candidates, and the mean time per candidate.

    ``mean_seconds`` leaves out attempts that a later attempt replaced.
    ``usd`` is the whole cost in dollars. It is the sum of ``answers_usd`` (with simulated tools) and ``judging_usd``
    (judges and rewards), and None if no cost is known.
    """

    usd: float | None
    answers_usd: float
    judging_usd: float
    usd_per_verified: float | None
    prompt_tokens: int
    completion_tokens: int
    mean_seconds: float | None
    by_model: list[ModelCostJson]


class PairsJson(TypedDict):
    """The figures of the preference pairs.

    ``chosen_longer`` is the share of pairs in which the chosen side is longer. ``mean_length_difference`` is in
    characters. ``train`` and ``test`` are numbers of pairs; a key is absent if its table does not exist.
    """

    total: int
    mean_margin: float | None
    chosen_longer: float
    mean_length_difference: float
    by_reason: dict[str, int]
    by_provenance: dict[str, int]
    train: NotRequired[int]
    test: NotRequired[int]


class ProblemJson(TypedDict):
    """A problem of the run; see ``analysis.problems.Problem``."""

    fact: str
    remedy: str


class JudgeUseJson(TypedDict):
    """How often a judge was asked about a candidate, decided its verdict, or gave no valid reply."""

    asked: int
    decided: int
    failed: int


class RunJson(RatesJson):
    """All figures of one run. ``pairs`` is None if the run has no table of pairs."""

    run: str
    metadata: dict[str, str]
    n: int
    records: int
    outcomes: dict[str, int]
    disagreements: int  # candidates that abstain because their program fails in one of two runs
    tests_in_program: int  # passes of tests that were compiled with the program
    by_method: dict[str, dict[str, int]]  # verifier and its method -> outcome -> candidates
    judge: JudgeUseJson
    by_split: dict[str, RatesJson]
    by_index: dict[int, IndexJson]
    pass_at: list[CurvePointJson]
    refusals: RefusalsJson
    quality: QualityJson
    cost: CostJson
    pairs: PairsJson | None
    problems: list[ProblemJson]
    audit: list[OpinionJson]  # the second opinions of ``bestofn audit``


def to_json(figures: RunFigures, *, resamples: int = RESAMPLES) -> RunJson:
    """Return all figures as JSON values. ``resamples`` is the number of bootstrap resamples per interval."""
    return {
        "run": figures.name,
        "metadata": {key: figures.metadata[key] for key in SHOWN_METADATA if key in figures.metadata},
        "n": figures.n,
        "records": figures.candidates,
        "outcomes": dict(figures.outcomes),
        "disagreements": figures.disagreements,
        "tests_in_program": figures.tests_in_program,
        "by_method": {method: dict(outcomes) for method, outcomes in figures.totals.outcomes_by_method.items()},
        "judge": judge_use(figures),
        **_rates(figures, None, resamples),
        "by_split": {split: _rates(figures, split, resamples) for split in figures.by_split},
        "by_index": _by_index(figures),
        "pass_at": [_point(point) for point in figures.pass_at(resamples=resamples)],
        "refusals": {"count": figures.totals.refusals.total(), "by_type": dict(figures.totals.refusals)},
        "quality": _quality(figures),
        "cost": _cost(figures),
        "pairs": _pairs(figures.pairs) if figures.pairs else None,
        "problems": [{"fact": one.fact, "remedy": one.remedy} for one in problems(figures)],
        "audit": list(figures.audit),
    }


def judge_use(figures: RunFigures) -> JudgeUseJson:
    """Return how often a judge was asked about the candidates of a run."""
    totals = figures.totals
    return {"asked": totals.judged.total(), "decided": totals.judge_decided, "failed": totals.judged[True]}


def _rates(figures: RunFigures, split: str | None, resamples: int) -> RatesJson:
    rates = figures.rates(split, resamples=resamples)
    one, last, best = rates.pass_at_1, rates.pass_at_k, rates.best_by_reward
    return {
        "queries": rates.queries,
        "candidates": rates.candidates,
        "verified": rates.passes,
        "k": last.k if last else None,
        "rate": one.mean if one else None,
        "rate_interval": (one.low, one.high) if one else None,
        "best_of_n": last.mean if last else None,
        "best_of_n_interval": (last.low, last.high) if last else None,
        "picked": best.mean if best else None,
        "picked_interval": (best.low, best.high) if best else None,
        "first": rates.first,
        "coverage": rates.coverage,
    }


def _by_index(figures: RunFigures) -> dict[int, IndexJson]:
    rows: dict[int, IndexJson] = {}
    for index, outcomes in figures.by_index.items():
        records, verified = outcomes.total(), outcomes["pass"]
        decided = outcomes["pass"] + outcomes["fail"]
        rows[index] = {"records": records, "verified": verified, "rate": share(verified, decided)}
    return rows


def _point(point: CurvePoint) -> CurvePointJson:
    return {"k": point.k, "mean": point.mean, "low": point.low, "high": point.high, "queries": point.queries}


def _quality(figures: RunFigures) -> QualityJson:
    totals = figures.totals
    return {
        "empty": totals.empty,
        "short": totals.short,
        "truncated": totals.truncated,
        "repeats": totals.repeats,
        "errors": totals.failures.total(),
        "mean_characters": totals.characters.mean,
    }


def _cost(figures: RunFigures) -> CostJson:
    totals = figures.totals
    usd = totals.total_usd
    return {
        "usd": usd,
        "answers_usd": totals.usd.sum,
        "judging_usd": totals.judging_usd.sum,
        "usd_per_verified": None if usd is None else share(usd, figures.verified),
        "prompt_tokens": round(totals.prompt_tokens.sum),
        "completion_tokens": round(totals.completion_tokens.sum),
        "mean_seconds": totals.seconds.mean,
        "by_model": [
            {
                "model": model,
                "role": role,
                "attempts": one.attempts,
                "usd": one.usd.sum if one.usd.known else None,
                "prompt_tokens": one.prompt_tokens,
                "completion_tokens": one.completion_tokens,
            }
            for (role, model), one in sorted(totals.models.items())
        ],
    }


def _pairs(pairs: PairFigures) -> PairsJson:
    figures: PairsJson = {
        "total": pairs.total,
        "mean_margin": pairs.margins.mean if pairs.margins.count else None,
        "chosen_longer": pairs.length_bias.longer_share,
        "mean_length_difference": pairs.length_bias.mean_difference,
        "by_reason": dict(pairs.by_reason),
        "by_provenance": dict(pairs.by_provenance),
    }
    if "train" in pairs.by_side:
        figures["train"] = pairs.by_side["train"]
    if "test" in pairs.by_side:
        figures["test"] = pairs.by_side["test"]
    return figures
