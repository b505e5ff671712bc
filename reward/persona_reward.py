"""A reward for answers in the style of a persona. Configured by ``conf/reward/persona.yaml``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bestofn.builders.records import Candidate, Persona, Query, Score, Verdict

CODE = re.compile(r"```.*?```|\\boxed\{[^}]*\}", re.DOTALL)


class PersonaReward:
    """Counts the matches of the persona's markers, which are regular expressions, outside of code and ``\\boxed``.

    The score is the number of matches divided by ``strong``, at most 1. If a marker matches inside code or ``\\boxed``,
    0.5 is subtracted.
    """

    name = "persona"

    def __init__(self, persona: Persona | None = None, strong: int = 3) -> None:
        if strong < 1:
            raise ValueError(f"strong is {strong}; expected at least 1 match")
        self.strong = strong
        self.markers = [re.compile(marker, re.IGNORECASE) for marker in (persona.markers if persona else ())]

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        """Return one score per candidate. All values are None if the run has no persona with markers."""
        return [self._one(candidate) for candidate in candidates]

    def _one(self, candidate: Candidate) -> Score:
        if candidate.error or not self.markers:
            return Score(
                None,
                {} if self.markers else {"error": "the run has no persona with markers"},
            )
        prose = CODE.sub(" ", candidate.text)
        hits = sum(len(marker.findall(prose)) for marker in self.markers)
        inside = any(marker.search(part) for part in CODE.findall(candidate.text) for marker in self.markers)
        return Score(min(1.0, hits / self.strong) - 0.5 * inside, {"markers": hits, "leaked": inside})
