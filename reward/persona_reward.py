"""A reward for the voice of a persona. ``conf/reward/persona.yaml`` builds it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bestofn.builders.records import Candidate, Persona, Query, Score, Verdict

CODE = re.compile(r"```.*?```|\\boxed\{[^}]*\}", re.DOTALL)


class PersonaReward:
    """Marker matches divided by ``strong``, at most 1; minus 0.5 for a match inside code or ``\\boxed``."""

    name = "persona"

    def __init__(self, persona: Persona | None = None, strong: int = 3) -> None:
        if strong < 1:
            raise ValueError(f"strong is {strong}; expected at least 1 match")
        self.strong = strong
        self.markers = [re.compile(marker, re.IGNORECASE) for marker in (persona.markers if persona else ())]

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        """The reward of every candidate; no value without a persona that has markers."""
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
