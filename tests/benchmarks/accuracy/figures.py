"""Computes the figures of a measurement: agreement, wrong decisions, Brier score and reliability table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from bestofn.builders.records import Verdict
from tests.benchmarks.accuracy.labelled import Case

LIMITS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Limits of the bins of stated confidence. The upper limit belongs to the last bin only."""
ENOUGH = 100
"""A bin with fewer rows says little about the calibration."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision of a verifier. ``said`` is None if the answer is undecided.

    ``confidence`` is the stated probability that ``said`` is right; None if the verifier states none. ``rule`` is the
    rule that decided. ``table`` names the part of ``verifiers/calibration.json`` with the confidence of this rule; ""
    if there is none. ``outcome`` is the key of the outcome in this part; "" if the key is ``said``.
    """

    said: str | None
    confidence: float | None = None
    rule: tuple[str, ...] = ()
    table: str = ""
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """One labelled answer with the decision of the verifier. ``seconds`` is the wall-clock time of the decision."""

    case: Case
    decision: Decision
    verdict: Verdict
    seconds: float = 0.0

    @property
    def right(self) -> bool:
        """Whether the decision agrees with the label."""
        return self.decision.said == self.case.label


def figures(results: Sequence[Result], positive: frozenset[str]) -> dict[str, object]:
    """Return the figures of one set. All rates are over the decided rows; a rate without rows is None.

    ``positive`` are the decisions that count as positive. A *wrong pass* is a positive decision where the label is
    negative; a *wrong fail* is the opposite.
    """
    decided = [result for result in results if result.decision.said is not None]
    cells = Counter((result.case.label in positive, result.decision.said in positive) for result in decided)
    stated = [
        (result.decision.confidence, result.right) for result in decided if result.decision.confidence is not None
    ]
    return {
        "rows": len(results),
        "decided": len(decided),
        "undecided": len(results) - len(decided),
        "errors": sum(result.verdict.outcome == "error" for result in results),
        "accuracy": _share(sum(result.right for result in decided), len(decided)),
        "precision": _share(cells[True, True], cells[True, True] + cells[False, True]),
        "recall": _share(cells[True, True], cells[True, True] + cells[True, False]),
        "wrong_fails": cells[True, False],
        "wrong_passes": cells[False, True],
        "positives": sum(result.case.label in positive for result in results),
        "brier": _share(sum((sure - right) ** 2 for sure, right in stated), len(stated)),
        "bins": bins(stated),
    }


def bins(stated: Sequence[tuple[float, bool]]) -> list[dict[str, float | int]]:
    """Return the reliability table of (stated confidence, right) pairs, without empty bins."""
    table = []
    for low, high in pairwise(LIMITS):
        inside = [(sure, right) for sure, right in stated if low <= sure < high or sure == high == LIMITS[-1]]
        if inside:
            mean = sum(sure for sure, _ in inside) / len(inside)
            share = sum(right for _, right in inside) / len(inside)
            table.append({"from": low, "to": high, "rows": len(inside), "stated": mean, "right": share})
    return table


def badly_calibrated(table: Sequence[dict[str, float | int]], within: float = 0.03) -> list[dict[str, float | int]]:
    """Return the bins in which confidence and share of right decisions differ by more than ``within``.

    Bins with few rows are omitted.
    """
    return [one for one in table if one["rows"] >= ENOUGH and abs(one["stated"] - one["right"]) > within]


def _share(part: float, whole: int) -> float | None:
    return part / whole if whole else None
