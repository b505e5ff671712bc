"""A reward for answers in the requested format. Configured by ``conf/reward/format.yaml``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from bestofn.builders.records import Candidate, JsonObject, Query, Score, Verdict


class FormatReward:
    """Scores 1.0 if the answer has the requested format, otherwise 0.0 with the reason in ``parts["problem"]``.

    ``pattern``: a regular expression that the whole text must match (``.`` also matches line ends). The default is
    ``<think>…</think><answer>…</answer>``. Each tag in the pattern must occur exactly once in the answer.
    ``sections``: texts that must occur in this order. With ``tool_calls``, every tool call must name a declared tool,
    and its arguments must be a JSON object. Raises ``ValueError`` if ``pattern`` is not a valid regular expression.
    """

    name = "format"

    def __init__(
        self,
        pattern: str | None = r"\s*<think>.+?</think>\s*<answer>.+?</answer>\s*",
        sections: Sequence[str] = (),
        tool_calls: bool = False,
    ) -> None:
        self.sections, self.tool_calls = tuple(sections), tool_calls
        try:
            self.pattern = re.compile(pattern, re.DOTALL) if pattern else None
        except re.error as error:
            raise ValueError(f"pattern is not a valid regular expression: {pattern!r}: {error}") from error
        self._once = re.findall(r"</?\w+>", pattern or "")

    async def score(self, query: Query, candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[Score]:
        """Return one score per candidate. The value is None if the candidate has an error."""
        return [self._one(query, candidate) for candidate in candidates]

    def _one(self, query: Query, candidate: Candidate) -> Score:
        if candidate.error:
            return Score(None)
        problem = self._problem(query, candidate)
        return Score(0.0, {"problem": problem}) if problem else Score(1.0)

    def _problem(self, query: Query, candidate: Candidate) -> str:
        text = candidate.text
        if self.pattern and not self.pattern.fullmatch(text):
            return "the text does not match the pattern"
        if any(text.count(tag) != 1 for tag in self._once):
            return "a tag does not appear exactly once"
        place = 0
        for section in self.sections:
            place = text.find(section, place)
            if place < 0:
                return f"section {section!r} is missing or out of order"
            place += len(section)
        if self.tool_calls:
            declared = {str((tool.get("function") or {}).get("name")) for tool in query.tools}
            return next(filter(None, (_call_problem(call, declared) for call in candidate.tool_calls)), "")
        return ""


def _call_problem(call: JsonObject, declared: set[str]) -> str:
    """Return the problem of a tool call as text; "" if the call is valid."""
    function = call.get("function") or {}
    if function.get("name") not in declared:
        return f"tool {function.get('name')!r} is not declared"
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return f"the arguments of {function.get('name')!r} are not JSON"
    return "" if isinstance(arguments, Mapping) else f"the arguments of {function.get('name')!r} are not a JSON object"
