"""Quality of a judge against labels: accuracy, biases and calibration. Pure functions.

``tests/benchmarks/accuracy_judge.py`` calls it, and so can users (docs/judge.md). A pairwise judge compares each pair
in both orders. Its verdict counts only when both orders agree (JudgeBench, arXiv:2410.12784); otherwise it is a tie.
The position bias measures how often the verdict follows the position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bestofn.builders.statistics.descriptive import correlation
from bestofn.builders.statistics.intervals import wilson_interval

Side = Literal["A", "B", "tie"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One pair judged in both orders. The sides keep their names from the data, whatever their position.

    ``first_order`` is the verdict with A in the first position, ``second_order`` with B in the first position. None
    means that the reply was not readable.
    """

    first_order: Side | None
    second_order: Side | None
    label: Side | None = None
    length_a: int = 0
    length_b: int = 0
    model_a: str = ""
    model_b: str = ""

    @property
    def verdict(self) -> Side | None:
        """The side that both orders prefer, or a tie; None when one order has no readable reply."""
        if self.first_order is None or self.second_order is None:
            return None
        return self.first_order if self.first_order == self.second_order else "tie"


@dataclass(frozen=True, slots=True)
class PairwiseReport:
    """The quality of a pairwise judge. All shares are of the comparisons that are readable in both orders.

    ``self_preference`` follows Wataoka et al. (arXiv:2410.21819). It is the share of pairs in which the better answer
    wins when the judge's own model wrote it, minus that share when the other model wrote it. None without pairs of both
    kinds.
    """

    pairs: int
    unread: int  # comparisons without a readable reply in one of the orders
    accuracy: float  # share of labelled pairs with a verdict that is consistent and correct
    accuracy_interval: tuple[float, float]
    accuracy_first_order: float  # share of labelled pairs that the first order alone decides correctly
    consistency: float  # share with the same verdict in both orders
    ties: float
    position_bias: float  # share that always prefers the first position minus the second; +1: always the first
    length_bias: float  # correlation of the verdict (A +1, B −1) with which answer is longer
    longer_wins: float  # share of decided pairs of unequal length that the longer answer wins
    self_preference: float | None = None


def pairwise_report(comparisons: Sequence[Comparison], judge_model: str = "") -> PairwiseReport:
    """The report; ``judge_model`` is the name of the judging model, as in ``model_a`` and ``model_b``."""
    read = [one for one in comparisons if one.verdict is not None]
    labelled = [one for one in read if one.label is not None]
    right = sum(one.verdict == one.label for one in labelled)
    first = sum(one.first_order == "A" and one.second_order == "B" for one in read)
    second = sum(one.first_order == "B" and one.second_order == "A" for one in read)
    worth = {"A": 1.0, "B": -1.0, "tie": 0.0}
    decided = [one for one in read if one.verdict != "tie" and one.length_a != one.length_b]
    return PairwiseReport(
        pairs=len(comparisons),
        unread=len(comparisons) - len(read),
        accuracy=_share(right, len(labelled)),
        accuracy_interval=wilson_interval(right, len(labelled)),
        accuracy_first_order=_share(sum(one.first_order == one.label for one in labelled), len(labelled)),
        consistency=_share(sum(one.first_order == one.second_order for one in read), len(read)),
        ties=_share(sum(one.verdict == "tie" for one in read), len(read)),
        position_bias=_share(first - second, len(read)),
        length_bias=correlation(
            [worth[one.verdict or "tie"] for one in read],
            [float(np.sign(one.length_a - one.length_b)) for one in read],
        ),
        longer_wins=_share(sum((one.verdict == "A") == (one.length_a > one.length_b) for one in decided), len(decided)),
        self_preference=_self_preference(
            [
                ((one.model_a if one.label == "A" else one.model_b) == judge_model, one.verdict == one.label)
                for one in labelled
                if one.label != "tie" and judge_model in (one.model_a, one.model_b) and one.model_a != one.model_b
            ]
        ),
    )


@dataclass(frozen=True, slots=True)
class CalibrationReport:
    """The quality of a pointwise judge.

    ``self_preference`` (arXiv:2410.21819) is the share of correct answers that pass when the judge's own model wrote
    them, minus that share for other models. None without correct answers of both kinds.
    """

    judged: int
    accuracy: float
    accuracy_interval: tuple[float, float]
    ece: float  # expected calibration error, in bins of equal width
    brier: float  # mean squared error of the stated probability that the answer is correct
    kappa: float  # Cohen's agreement with the labels, beyond chance
    length_bias: float  # correlation of passing with length; 0.0 without lengths
    self_preference: float | None = None


def calibration_report(
    says: Sequence[bool],
    confidences: Sequence[float],
    labels: Sequence[bool],
    lengths: Sequence[int] = (),
    bins: int = 10,
    own: Sequence[bool] = (),
) -> CalibrationReport:
    """The report over pointwise verdicts with their confidences, compared with ``labels``.

    ``own`` says per answer whether the judge's own model wrote it; without it there is no ``self_preference``. Raises
    ``ValueError`` when the numbers of verdicts, confidences and labels differ.
    """
    if not len(says) == len(confidences) == len(labels):
        raise ValueError(
            f"found {len(says)} verdicts, {len(confidences)} confidences and {len(labels)} labels; "
            "expected one of each per answer"
        )
    right = [verdict == label for verdict, label in zip(says, labels, strict=True)]
    chance = [sure if verdict else 1.0 - sure for verdict, sure in zip(says, confidences, strict=True)]
    return CalibrationReport(
        judged=len(says),
        accuracy=_share(sum(right), len(right)),
        accuracy_interval=wilson_interval(sum(right), len(right)),
        ece=expected_calibration_error(confidences, right, bins),
        brier=float(np.mean([(p - label) ** 2 for p, label in zip(chance, labels, strict=True)])) if right else 0.0,
        kappa=cohens_kappa(says, labels),
        length_bias=correlation([float(verdict) for verdict in says], [float(length) for length in lengths])
        if len(lengths) == len(says)
        else 0.0,
        self_preference=_self_preference(
            [(mine, verdict) for mine, verdict, label in zip(own, says, labels, strict=True) if label] if own else []
        ),
    )


def _self_preference(better: Sequence[tuple[bool, bool]]) -> float | None:
    """Win rate of the judge's own answers minus that of others, from (own, won) per answer that should win."""
    own = [won for mine, won in better if mine]
    others = [won for mine, won in better if not mine]
    return sum(own) / len(own) - sum(others) / len(others) if own and others else None


def expected_calibration_error(confidences: Sequence[float], right: Sequence[bool], bins: int = 10) -> float:
    """Expected calibration error: Σ |bin|/n · |accuracy − confidence| over bins of equal width (arXiv:1706.04599)."""
    if not len(right):
        return 0.0
    sure, hit = np.asarray(confidences, float), np.asarray(right, float)
    place = np.minimum((sure * bins).astype(int), bins - 1)
    gaps = [abs(hit[place == b].mean() - sure[place == b].mean()) * (place == b).sum() for b in set(place.tolist())]
    return float(sum(gaps) / len(right))


def cohens_kappa(first: Sequence[bool], second: Sequence[bool]) -> float:
    """Agreement beyond chance (Cohen 1960); 1.0 when both always give the same single verdict."""
    n = len(first)
    if n == 0:
        return 0.0
    agreed = sum(a == b for a, b in zip(first, second, strict=True)) / n
    yes_a, yes_b = sum(first) / n, sum(second) / n
    by_chance = yes_a * yes_b + (1 - yes_a) * (1 - yes_b)
    return 1.0 if by_chance == 1.0 else (agreed - by_chance) / (1.0 - by_chance)


def _share(part: float, whole: int) -> float:
    return part / whole if whole else 0.0
