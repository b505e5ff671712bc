"""Grades answers with a rubric: executable checks first, then a judge model for the other criteria.

``rubric_verifier`` and ``bestofn.reward.rubric_reward`` use this module.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bestofn.builders.errors import ConfigError
from bestofn.builders.formats.judge_reply import MOST_JUDGED, candidate_text, fenced, object_schema
from bestofn.builders.formats.judge_request import conversation_text, judge_replies, judge_request
from bestofn.builders.formats.rubric import Criterion, Fulfilment, checked, criteria_of, rubric_of
from bestofn.builders.protocols import PlannedCalls, Sampler
from bestofn.builders.records import Candidate, Query, Verdict
from bestofn.verifiers.judge_prompts import SYSTEM
from bestofn.verifiers.judge_verifier import reference_text

SCHEMA = object_schema(
    reasoning={"type": "string"},
    true={"type": "array", "items": {"type": ["boolean", "null"]}},
    confidence={"type": "number", "minimum": 0, "maximum": 1},
)


@dataclass(frozen=True, slots=True)
class Grade:
    """The criteria that an answer satisfies, the lowest confidence of the judge, and the problems of its replies."""

    fulfilment: Fulfilment
    confidence: float = 1.0
    problems: Sequence[str] = ()


class RubricGrader:
    """Finds which criteria an answer satisfies.

    The rubric of a query is ``rubric`` in its metadata, or else its entry in ``file``, or else ``criteria``. ``file``
    has JSON lines with ``query_id`` and ``criteria``, as ``bestofn rubrics`` writes them. The judge gets at most
    ``per_request`` criteria per request, and sees the reference answer if ``use_reference`` is set. If the judge cannot
    decide about a criterion, or its reply cannot be read, it is unknown whether the criterion is satisfied. The answer
    gets no weight for such a criterion.
    """

    def __init__(
        self,
        judge: Sampler | None,
        criteria: Sequence[object] = (),
        file: str = "",
        per_request: int = 8,
        use_reference: bool = True,
        max_tokens: int = 1_500,
    ) -> None:
        if per_request < 1:
            raise ConfigError(f"per_request is {per_request}; expected at least 1")
        self.judge, self.per_request, self.use_reference, self.max_tokens = (
            judge,
            per_request,
            use_reference,
            max_tokens,
        )
        self.criteria = criteria_of(list(criteria), "criteria")
        self.of_query = rubrics_in(Path(file)) if file else {}

    def rubric(self, query: Query) -> Sequence[Criterion]:
        """Return the rubric of ``query``; empty if there is none."""
        return rubric_of(query) or self.of_query.get(query.id) or self.criteria

    def planned_calls(self, query: Query, candidates: int) -> Sequence[PlannedCalls]:
        """Return the planned calls: per candidate, one for every ``per_request`` criteria without a check."""
        judged = sum(one.check is None for one in self.rubric(query))
        if self.judge is None or not judged:
            return ()
        count = candidates * -(-judged // self.per_request)
        return [PlannedCalls(self.judge, count, count, self.max_tokens)]

    async def grade(
        self, query: Query, candidate: Candidate, verdict: Verdict | None, *, stop_if_broken: bool = False
    ) -> Grade:
        """Grade one answer. With ``stop_if_broken``, no request is sent if a check fails for a required criterion."""
        rubric, text = self.rubric(query), candidate.text
        states = [one.satisfied(checked(one, text, verdict)) if one.check is not None else None for one in rubric]
        judged = [place for place, one in enumerate(rubric) if one.check is None]
        if not judged or (stop_if_broken and Fulfilment(rubric, states).broken):
            return Grade(Fulfilment(rubric, states))
        if self.judge is None:
            return Grade(Fulfilment(rubric, states), problems=["no judge is configured"])
        parts = [judged[start : start + self.per_request] for start in range(0, len(judged), self.per_request)]
        replies = await asyncio.gather(*(self._ask(query, candidate, [rubric[i] for i in part]) for part in parts))
        confidences, problems = [1.0], []
        for part, reply in zip(parts, replies, strict=True):
            if isinstance(reply, str):
                problems.append(reply)
                continue
            confidences.append(reply[1])
            for place, holds in zip(part, reply[0], strict=True):
                states[place] = rubric[place].satisfied(holds)
        return Grade(Fulfilment(rubric, states), min(confidences), problems)

    async def _ask(
        self, query: Query, candidate: Candidate, criteria: Sequence[Criterion]
    ) -> tuple[list[bool | None], float] | str:
        """Ask the judge which criteria the answer satisfies.

        Return whether each criterion is true of the answer (None: unknown), and the confidence of the judge. If the
        reply cannot be read, return the reason.
        """
        assert self.judge is not None
        answer = candidate_text(candidate, MOST_JUDGED)
        reference = reference_text(query) if self.use_reference else ""
        quoted = {"question": conversation_text(query), **({"reference": reference} if reference else {})}
        statements = "\n".join(f"{place}. {one.text}" for place, one in enumerate(criteria, start=1))
        instruction = (
            f"Decide for each of the {len(criteria)} statements whether it is true of the answer:\n{statements}\n\n"
            "Write null for a statement if you cannot know. First reason briefly about each statement. Reply: "
            '{"reasoning": "…", "true": [true, false or null per statement, in order], "confidence": 0 to 1}'
        )
        material = fenced(**quoted, answer=answer)
        request = judge_request(SYSTEM, material, instruction, SCHEMA, max_tokens=self.max_tokens)
        (reply,) = await judge_replies(self.judge, request, [answer])
        if isinstance(reply, str):
            return reply
        states = reply["true"]
        if len(states) != len(criteria) or not all(state is None or isinstance(state, bool) for state in states):
            return f"the judge's reply has {states!r}; expected {len(criteria)} values, each true, false or null"
        return states, reply["confidence"]


def rubrics_in(path: Path) -> dict[str, list[Criterion]]:
    """Read the file of rubrics that ``bestofn rubrics`` writes: query id -> criteria.

    Raises ``ConfigError`` if the file cannot be read, or if a line is not valid.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the file of rubrics {path} cannot be read: {error}") from error
    rubrics = {}
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{path}, line {number} is not valid JSON: {error}") from error
        if row is None:
            continue
        if not isinstance(row, Mapping) or "query_id" not in row or "criteria" not in row:
            raise ConfigError(f"{path}, line {number}: expected an object with the keys query_id and criteria")
        rubrics[str(row["query_id"])] = criteria_of(row["criteria"], f"{path}, line {number}: criteria")
    return rubrics
