"""Agreement with a reference text, by words: for references that no verifier can decide."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from bestofn.builders.records import Candidate, Query, Score, Verdict

NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?")


class OverlapReward:
    """``f1`` of words, ``rouge_l`` or ``numbers``, each from 0 to 1; of several references the best counts."""

    name = "overlap"

    def __init__(self, measure: Literal["f1", "rouge_l", "numbers"] = "f1") -> None:
        self.measure = measure
        self._function = MEASURES[measure]

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        references = [text for text in (query.reference.answer, *query.reference.answers) if text]
        if not references:
            return [Score(None, {"error": "the query has no reference text"})] * len(candidates)
        return [
            Score(None) if one.error else Score(max(self._function(one.text, reference) for reference in references))
            for one in candidates
        ]


def f1(text: str, reference: str) -> float:
    """Harmonic mean of precision and recall of the words, each counted as often as it appears (SQuAD's F1)."""
    said, meant = Counter(_words(text)), Counter(_words(reference))
    common = sum((said & meant).values())
    return 2 * common / (sum(said.values()) + sum(meant.values())) if common else 0.0


def rouge_l(text: str, reference: str) -> float:
    """F-measure of the longest common subsequence of words (Lin 2004)."""
    said, meant = _words(text), _words(reference)
    if not said or not meant:
        return 0.0
    row = [0] * (len(meant) + 1)
    for word in said:
        before = 0
        for place, other in enumerate(meant, start=1):
            before, row[place] = row[place], before + 1 if word == other else max(row[place], row[place - 1])
    return 2 * row[-1] / (len(said) + len(meant))


def number_share(text: str, reference: str) -> float:
    """Share of the reference's numbers that the text says; 0.0 when the reference has none."""
    said, meant = Counter(_numbers(text)), Counter(_numbers(reference))
    return sum((said & meant).values()) / sum(meant.values()) if meant else 0.0


MEASURES: Mapping[str, Callable[[str, str], float]] = {"f1": f1, "rouge_l": rouge_l, "numbers": number_share}


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _numbers(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in NUMBER.findall(text)]
