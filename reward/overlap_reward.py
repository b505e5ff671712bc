"""A reward for words that the answer shares with the reference text, for tasks that no verifier can decide.

Configured by ``conf/reward/overlap.yaml``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from bestofn.builders.formats.missing_scores import inapplicable
from bestofn.builders.records import Candidate, Query, Score, Verdict

NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?")


class OverlapReward:
    """Scores the overlap of an answer with the reference text, from 0 to 1.

    ``measure`` is ``f1``, ``rouge_l`` or ``numbers``. If the query has several references, the highest score is used.
    """

    name = "overlap"

    def __init__(self, measure: Literal["f1", "rouge_l", "numbers"] = "f1") -> None:
        self.measure = measure
        self._function = MEASURES[measure]

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        """Return the overlap of every candidate. All values are None if the query has no reference text."""
        references = [text for text in (query.reference.answer, *query.reference.answers) if text]
        if not references:
            return inapplicable("the query has no reference text", len(candidates))
        return [
            Score(None) if one.error else Score(max(self._function(one.text, reference) for reference in references))
            for one in candidates
        ]


def f1(text: str, reference: str) -> float:
    """Return the F1 score of SQuAD: the harmonic mean of word precision and word recall.

    A word that occurs several times is counted several times.
    """
    given, wanted = Counter(_words(text)), Counter(_words(reference))
    common = sum((given & wanted).values())
    return 2 * common / (sum(given.values()) + sum(wanted.values())) if common else 0.0


def rouge_l(text: str, reference: str) -> float:
    """Return the F-measure of the longest common subsequence of words (ROUGE-L, Lin 2004)."""
    given, wanted = _words(text), _words(reference)
    if not given or not wanted:
        return 0.0
    row = [0] * (len(wanted) + 1)
    for word in given:
        before = 0
        for place, other in enumerate(wanted, start=1):
            before, row[place] = row[place], before + 1 if word == other else max(row[place], row[place - 1])
    return 2 * row[-1] / (len(given) + len(wanted))


def number_share(text: str, reference: str) -> float:
    """Return the share of the numbers in ``reference`` that occur in ``text``; 0.0 if ``reference`` has no numbers."""
    given, wanted = Counter(_numbers(text)), Counter(_numbers(reference))
    return sum((given & wanted).values()) / sum(wanted.values()) if wanted else 0.0


MEASURES: Mapping[str, Callable[[str, str], float]] = {"f1": f1, "rouge_l": rouge_l, "numbers": number_share}


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _numbers(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in NUMBER.findall(text)]
