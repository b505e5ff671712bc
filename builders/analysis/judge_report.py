"""Measures the quality of a judge against labels: accuracy, biases and calibration. All functions are pure.

``bestofn benchmark accuracy kinds=judge`` uses this module, and users can call it (docs/measurements.md). A pairwise
judge compares each pair in both orders. Its verdict counts only if both orders agree (JudgeBench, arXiv:2410.12784);
otherwise it is a tie. The position bias measures how often the judge prefers an answer because of its position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bestofn.builders.statistics.descriptive import correlation
from bestofn.builders.statistics.proportions import wilson_interval

Side = Literal["A", "B", "tie"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One pair of answers, A and B, judged in both orders. The letters do not change with the order.

    ``first_order`` is the verdict with A in the first position. ``second_order`` is the verdict with B in the first
    position. A verdict is None if the judge's reply could not be parsed.
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
        """The answer that wins in both orders; "tie" if the orders disagree; None if a reply could not be parsed."""
        if self.first_order is None or self.second_order is None:
            return None
        return self.first_order if self.first_order == self.second_order else "tie"


@dataclass(frozen=True, slots=True)
class PairwiseReport:
    """The quality of a pairwise judge. Only pairs with parsed replies in both orders count, except in ``unread``.

    ``self_preference`` follows Wataoka et al. (arXiv:2410.21819). It is a difference of two win rates of the better
    answer. The first rate is over pairs whose better answer is by the judge's own model. The second rate is over pairs
    whose better answer is by another model. ``self_preference`` is None if there are no pairs of one kind.
    """

    pairs: int
    unread: int  # pairs for which a reply could not be parsed
    accuracy: float  # share of labelled pairs with the correct verdict in both orders
    accuracy_interval: tuple[float, float]
    accuracy_first_order: float  # share of labelled pairs with the correct verdict in the first order
    consistency: float  # share of pairs with the same verdict in both orders
    ties: float
    position_bias: float  # share of pairs that prefer the first position in both orders − share for the second
    length_bias: float  # correlation of the preferred with the longer answer; each is coded A = +1, B = −1
    longer_wins: float  # share of decided pairs of unequal length that the longer answer wins
    self_preference: float | None = None


def pairwise_report(comparisons: Sequence[Comparison], judge_model: str = "") -> PairwiseReport:
    """Return the report of a pairwise judge. ``judge_model`` is its model name, as in ``model_a`` and ``model_b``."""
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

    ``self_preference`` (arXiv:2410.21819) is the pass rate of correct answers of the judge's own model, minus the pass
    rate of correct answers of other models. It is None if one of the two groups is empty.
    """

    judged: int
    accuracy: float
    accuracy_interval: tuple[float, float]
    ece: float  # expected calibration error, with bins of equal width
    brier: float  # mean squared error of the judge's probability that the answer is correct
    kappa: float  # Cohen's kappa between the verdicts and the labels
    length_bias: float  # correlation of the verdict (pass 1, fail 0) with the length; 0.0 if lengths are unknown
    self_preference: float | None = None


def calibration_report(
    says: Sequence[bool],
    confidences: Sequence[float],
    labels: Sequence[bool],
    lengths: Sequence[int] = (),
    bins: int = 10,
    own: Sequence[bool] = (),
) -> CalibrationReport:
    """Compare the verdicts of a pointwise judge with labels.

    ``says`` has the judge's verdicts (True: pass). ``labels`` has the correct verdicts. ``own`` is True for each answer
    that the judge's own model wrote; if ``own`` is empty, ``self_preference`` is None.
    Raises ``ValueError`` if the numbers of verdicts, confidences and labels differ.
    """
    if not len(says) == len(confidences) == len(labels):
        raise ValueError(
            f"found {len(says)} verdicts, {len(confidences)} confidences and {len(labels)} labels; "
            "expected one verdict, one confidence and one label per answer"
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
    """Return the win rate of the judge's own answers minus the win rate of other answers; None if a group is empty.

    ``better`` has one tuple (own, won) per answer that should win. ``own``: the judge's model wrote the answer.
    """
    own = [won for mine, won in better if mine]
    others = [won for mine, won in better if not mine]
    return sum(own) / len(own) - sum(others) / len(others) if own and others else None


def expected_calibration_error(confidences: Sequence[float], right: Sequence[bool], bins: int = 10) -> float:
    """Return Σ |bin|/n · |accuracy − confidence| over bins of equal width (arXiv:1706.04599); 0.0 for empty input."""
    if not len(right):
        return 0.0
    sure, hit = np.asarray(confidences, float), np.asarray(right, float)
    place = np.minimum((sure * bins).astype(int), bins - 1)
    gaps = [abs(hit[place == b].mean() - sure[place == b].mean()) * (place == b).sum() for b in set(place.tolist())]
    return float(sum(gaps) / len(right))


def cohens_kappa(first: Sequence[bool], second: Sequence[bool]) -> float:
    """Return Cohen's kappa (1960) of two lists of verdicts.

    The result is 0.0 if the lists are empty, and 1.0 if all verdicts in both lists are equal.
    """
    n = len(first)
    if n == 0:
        return 0.0
    agreed = sum(a == b for a, b in zip(first, second, strict=True)) / n
    yes_a, yes_b = sum(first) / n, sum(second) / n
    by_chance = yes_a * yes_b + (1 - yes_a) * (1 - yes_b)
    return 1.0 if by_chance == 1.0 else (agreed - by_chance) / (1.0 - by_chance)


def _share(part: float, whole: int) -> float:
    return part / whole if whole else 0.0
