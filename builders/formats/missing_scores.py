"""Builds scores without a value, for answers that could not be rated. ``parts["error"]`` gives the reason.

Used by the stage ``reward``, by rewards, and by the check of the first queries.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from bestofn.builders.records import Score


def finite_scores(scores: Sequence[Score]) -> list[Score]:
    """Return ``scores`` with None in place of a value that is NaN or infinite; ``parts["error"]`` gives the reason."""
    return [
        score
        if score.value is None or math.isfinite(score.value)
        else replace(
            score, value=None, parts={**score.parts, "error": f"the reward is {score.value}, not a finite number"}
        )
        for score in scores
    ]


def inapplicable(reason: str, count: int) -> list[Score]:
    """Return ``count`` scores without a value, for a query that the reward cannot be applied to.

    For example, the query has no rubric. This is not a failure of the reward (``has_failed``).
    """
    return [Score(None, {"error": reason, "cause": "data"})] * count


def has_failed(score: Score) -> bool:
    """Return whether the reward failed on this answer: it gave no value, for a reason that is not in the query."""
    return score.value is None and bool(score.parts.get("error")) and score.parts.get("cause") != "data"
