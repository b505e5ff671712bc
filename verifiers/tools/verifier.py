"""Verifies tool use against the reference: the calls, the final state, and the facts in the final answer.

``conf/verifier/tool.yaml`` builds the verifier; ``docs/tools.md`` describes the format of references.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from bestofn.builders.formats.tool_calls import call_arguments, call_name, to_chat
from bestofn.builders.formats.written_calls import WrittenCalls, written_calls
from bestofn.builders.records import Candidate, JsonObject, Query, ReferenceSource, Tool, Verdict
from bestofn.verifiers.calibration import calibrated
from bestofn.verifiers.tools.declarations import MadeCall, examine, same_name
from bestofn.verifiers.tools.matching import Matching, Order, difference, match, maximum_matching
from bestofn.verifiers.tools.trace import broken_tool, corrected_calls, refused_calls, turns_of_calls, without_answer
from bestofn.verifiers.tools.values import contains_fact, equal_values

# Compares the final state of the tool environment with the expected state.
#
# A state is the set of changed records: ``{table: {key: record}}``, with None for a deleted record. The environment
# creates keys that the reference cannot know, for example the key of a new booking. Therefore the expected records of a
# table may be a list without keys. Records of a list are matched by their fields.


class UnknownState(Exception):
    """Raised if the final state of an answer cannot be computed. The message is the reason."""


async def final_state_of(query: Query, candidate: Candidate) -> JsonObject:
    """Return the changes that the calls of an answer made in the mock world.

    A sampled answer has these changes in its ``detail``. The calls of a recorded answer are run again in a new world.
    Raises ``UnknownState`` if a call cannot be run again.
    """
    known = candidate.detail.get("state")
    if known is not None:
        return known
    from bestofn.sandbox.tools.mock_tools import MockTools  # its import takes long

    world = MockTools().fresh(int(query.metadata.get("world_seed") or 0), query.tools)
    for made in candidate.tool_calls:
        try:
            arguments = call_arguments(made)
        except ValueError:
            continue  # no tool could run this call
        result = await world.call(call_name(made), arguments)
        if result.source not in ("deterministic", "refused"):
            raise UnknownState(f"{call_name(made)} is not a tool of the mock world, so its call cannot be run again")
    return world.changes()


def state_differences(expected: JsonObject, state: JsonObject) -> list[str]:
    """Return the differences as sentences; [] if there are none.

    An expected record lists the fields to compare; other fields may have any value. A changed record that is not
    expected is a difference.
    """
    differences: list[str] = []
    for table in sorted({*expected, *state}):
        differences += _table(table, expected.get(table) or {}, state.get(table) or {})
    return differences


def _table(table: str, expected: JsonObject | Sequence[object], state: JsonObject) -> list[str]:
    if isinstance(expected, Mapping):
        wrong = [
            f"{table}/{key} is {state.get(key, 'unchanged')!r}; expected {record!r}"
            for key, record in expected.items()
            if key not in state or not _fits(record, state[key])
        ]
        return wrong + [f"{table}/{key} was changed, but should not be" for key in state if key not in expected]
    return _records(table, expected, state)


def _records(table: str, expected: Sequence[object], state: JsonObject) -> list[str]:
    keys = list(state)
    fits = [[_fits(record, state[key]) for key in keys] for record in expected]
    pairs = maximum_matching(fits, len(keys))
    missing = [f"{table} has no record {record!r}" for index, record in enumerate(expected) if index not in pairs]
    taken = {keys[index] for index in pairs.values()}
    return missing + [f"{table}/{key} was changed, but should not be" for key in keys if key not in taken]


def _fits(expected: object, record: object) -> bool:
    """Return whether ``record`` has every expected field with the expected value."""
    if isinstance(expected, Mapping) and isinstance(record, Mapping):
        return all(key in record and _fits(value, record[key]) for key, value in expected.items())
    return equal_values(expected, record)


Finding = tuple[bool | None, str]
"""(holds, reason): whether the answer meets one part of the reference (None: undecided), and the reason."""


_INEXACT = "it is written neither in JSON nor as a Python dict, so a server may not parse it"


class ToolVerifier:
    """Verifies tool use: an answer passes if its calls, final state and facts all agree with the reference.

    ``order``: how ``Reference.calls`` are matched: ``any`` order, ``sequence`` (position by position) or
    ``subsequence`` (in order, with other calls between them). ``extra_calls="allow"`` accepts calls that are not
    expected, such as look-ups. ``types="lenient"`` accepts ``"5"`` for ``5``. If ``written`` is true and the answer has
    no calls in the API format, calls that are written in its text are used.

    Calls that a tool refused are ignored, because the model saw the refusal and may have repeated the call. In a
    recorded dialogue, a call whose result is an error is not an extra call if the same tool is called again. If the
    reference has ``calls=()``, every call is wrong, including refused calls.

    If a part of the text looks like a call but cannot be parsed, the verdict is ``abstain``. The verdict is also
    ``abstain`` if the text contains the expected calls as invalid JSON, such as ``{"metric": True}``.

    ``references`` lists the trusted sources of references. By default, a reference written by a model
    (``Reference.source == "model"``) is not trusted, because it would reject other correct solutions. Without a trusted
    reference, the verdict is ``fail`` if the answer has an invalid call, otherwise ``abstain``. A call is invalid if no
    declared tool accepts it. With ``invalid="abstain"``, an invalid call also gives ``abstain``.

    If a mock tool failed because of an error in bestofn, ``fail`` becomes ``error``. ``detail`` records precision and
    recall of the calls.
    """

    name = "tool"

    def __init__(
        self,
        *,
        order: Order = "any",
        extra_calls: Literal["fail", "allow"] = "fail",
        references: Sequence[ReferenceSource] = ("gold",),
        types: Literal["strict", "lenient"] = "strict",
        invalid: Literal["fail", "abstain"] = "fail",
        written: bool = True,
    ) -> None:
        self.order: Order = order
        self.extra_calls = extra_calls
        self.references = tuple(references)
        self.lenient = types == "lenient"
        self.invalid = invalid
        self.written = written

    def verified_by(self, query: Query) -> str:
        """Return the name of this verifier if the query has a trusted reference; otherwise ""."""
        reference = query.reference
        known = reference.calls is not None or reference.state is not None or bool(reference.facts)
        return self.name if known and reference.source in self.references else ""

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        """Return the verdict on one answer after a comparison with every part of the reference."""
        try:
            tools = [to_chat(tool) for tool in query.tools]
        except ValueError as error:
            return Verdict("error", 1.0, f"the tool declarations of the query cannot be read: {error}", self.name)
        reference = query.reference
        calls, written = self._calls(candidate, tools, reference.calls or ())
        findings: list[Finding] = []
        detail: dict[str, object] = {"calls": len(calls)}
        if reference.source in self.references:
            if reference.calls is not None:
                doubt = written.unread or ("" if written.calls else written.quoted)
                if doubt:
                    return Verdict("abstain", 0.0, f"a tool call cannot be read: {doubt}", self.name, detail)
                found = self._check_calls(reference.calls, calls, tools, candidate, detail)
                findings.append((None, f"{found[1]}; {_INEXACT}") if found[0] and not written.exact else found)
            if reference.state is not None:
                findings.append(await check_state(reference.state, query, candidate, detail))
            if reference.facts:
                findings.append(_check_facts(reference.facts, candidate.text))
        if not findings:
            return self._without_reference(calls, detail)
        compared = {
            "calls": reference.calls is not None,
            "state": reference.state is not None,
            "facts": reference.facts,
        }
        detail["rule"] = "; ".join(part for part, given in compared.items() if given)
        return decided(findings, candidate, self.name, detail)

    def _calls(
        self, candidate: Candidate, tools: Sequence[Tool], expected: Sequence[JsonObject]
    ) -> tuple[list[MadeCall], WrittenCalls]:
        """Return the calls of the answer that no tool refused, and the calls that are written in its text.

        The text is searched only if the answer has no calls in the API format. If the query declares no tools, the
        names of the expected calls show which code fences after prose are calls.
        """
        native = candidate.tool_calls
        if native or not self.written:
            pairs = zip(native, refused_calls(candidate), strict=True)
            return [examine(call, tools) for call, refused in pairs if not refused], WrittenCalls(())
        named = tools or [{"type": "function", "function": {"name": str(call["name"])}} for call in expected]
        written = written_calls(candidate.text, named)
        return [examine(call, tools) for call in written.calls], written

    def _matching(
        self, expected: Sequence[JsonObject], calls: Sequence[MadeCall], tools: Sequence[Tool], candidate: Candidate
    ) -> Matching:
        """Match ``calls`` with the expected calls.

        In a recorded dialogue, a call that the model corrected later never counts as an extra call. If the match is
        complete without the corrected calls, they are left out.
        """
        matching = match(expected, calls, tools, order=self.order, lenient=self.lenient)
        if not matching.extra or len(calls) != len(candidate.tool_calls):
            return matching
        corrected = corrected_calls(candidate)
        places = [place for place, is_corrected in enumerate(corrected) if not is_corrected]
        if len(places) == len(calls):
            return matching
        rest = match(expected, [calls[place] for place in places], tools, order=self.order, lenient=self.lenient)
        if not rest.missing and not rest.extra:
            return rest
        return replace(matching, extra=tuple(place for place in matching.extra if not corrected[place]))

    def _check_calls(
        self,
        expected: Sequence[JsonObject],
        calls: Sequence[MadeCall],
        tools: Sequence[Tool],
        candidate: Candidate,
        detail: dict[str, object],
    ) -> Finding:
        matching = self._matching(expected, calls, tools, candidate)
        detail |= {"expected": len(expected), "precision": matching.precision, "recall": matching.recall}
        detail["invalid"] = [call.problem for call in calls if call.problem]
        if not expected:
            attempted = calls or [examine(call, tools) for call in candidate.tool_calls]  # refused calls count here
            if attempted:
                return False, f"no call was expected; {_named(attempted)} was made"
            if not candidate.text.strip():
                return False, "no call was expected, but the answer has no text"
            return True, "no call was expected and none was made"
        if matching.missing:
            return False, _missing(expected, calls, matching, tools, self.lenient)
        if matching.extra and self.extra_calls == "fail":
            extra = _named([calls[index] for index in matching.extra])
            if _may_be_lookups(matching, calls, expected, candidate):
                return None, f"{extra} was called in another turn; the reference does not state whether this is allowed"
            return False, f"{extra} was called but not expected"
        one = len(expected) == 1
        return True, "the expected call was made" if one else f"all {len(expected)} expected calls were made"

    def _without_reference(self, calls: Sequence[MadeCall], detail: dict[str, object]) -> Verdict:
        problems = [call.problem for call in calls if call.problem]
        detail["invalid"] = problems
        if problems and self.invalid == "fail":
            explanation = f"no declared tool accepts a call: {problems[0]}"
            return calibrated(Verdict("fail", 0.0, explanation, self.name, detail | {"rule": "declarations"}))
        seen = f"{len(calls)} well-formed calls" if calls else "no call"
        return Verdict("abstain", 0.0, f"{seen}; there is no trusted reference to compare with", self.name, detail)


def _may_be_lookups(
    matching: Matching, calls: Sequence[MadeCall], expected: Sequence[JsonObject], candidate: Candidate
) -> bool:
    """Return whether all extra calls may be look-ups that prepare the expected calls.

    A look-up uses a tool that the reference does not name, in a turn without an expected call.
    """
    turns = turns_of_calls(candidate)
    if len(turns) != len(calls):
        return False  # the calls are written in one text
    expected_turns = {turn for place, turn in enumerate(turns) if place not in matching.extra}
    named = [call_name(call) for call in expected]
    return not any(
        turns[place] in expected_turns or any(same_name(calls[place].name, name) for name in named)
        for place in matching.extra
    )


def decided(findings: Sequence[Finding], candidate: Candidate, name: str, detail: JsonObject) -> Verdict:
    """Return ``fail`` if a finding is False; otherwise ``abstain`` if a finding is None; otherwise ``pass``.

    If a mock tool failed because of an error in bestofn, ``fail`` becomes ``error``. A dialogue that ended at a limit
    before it had an answer does not pass.
    """
    failed = [reason for holds, reason in findings if holds is False]
    undecided = [reason for holds, reason in findings if holds is None]
    if without_answer(candidate):
        undecided.append(f"the dialogue ended without an answer ({candidate.detail['tool_stop']})")
    broken = broken_tool(candidate)
    if failed and broken:
        reason = f"a mock tool failed ({broken}), so the answer cannot be judged: {'; '.join(failed)}"
        return Verdict("error", 0.0, reason, name, detail)
    if failed:
        return calibrated(Verdict("fail", 0.0, "; ".join(failed), name, detail))
    if undecided:
        return Verdict("abstain", 0.0, "; ".join(undecided), name, detail)
    return calibrated(Verdict("pass", 0.0, "; ".join(reason for _, reason in findings), name, detail))


async def check_state(expected: JsonObject, query: Query, candidate: Candidate, detail: dict[str, object]) -> Finding:
    """Compare the final state of the mock world with the expected state. The differences are added to ``detail``."""
    try:
        differences = state_differences(expected, await final_state_of(query, candidate))
    except UnknownState as unknown:
        return None, f"the final state is unknown: {unknown}"
    detail["state_differences"] = differences
    if differences:
        return False, "the final state differs: " + "; ".join(differences[:3])
    return True, "the final state is as expected"


def _check_facts(facts: Sequence[str], answer: str) -> Finding:
    absent = [fact for fact in facts if not contains_fact(answer, fact)]
    if absent:
        return False, f"the final answer does not contain {', '.join(map(repr, absent))}"
    return True, f"the final answer contains all {len(facts)} facts"


def _missing(
    expected: Sequence[JsonObject],
    calls: Sequence[MadeCall],
    matching: Matching,
    tools: Sequence[Tool],
    lenient: bool,
) -> str:
    """Return a sentence about the first missing call: its differences from the most similar unmatched call."""
    want = expected[matching.missing[0]]
    if not calls:
        return f"no call was made; expected {want['name']}"
    left = [calls[index] for index in matching.extra]
    reasons = [difference(want, call, tools, lenient=lenient) for call in left]
    named = [reason for reason in reasons if "name" not in reason or len(reason) > 1]
    if not named:
        made = f"; the calls made were {_named(left)}" if left else ""
        return f"the expected call of {want['name']} is missing{made}"
    nearest = min(named, key=len)
    if not nearest:
        return f"{want['name']} was called out of order"
    return f"{want['name']}: " + "; ".join(f"{argument} {reason}" for argument, reason in nearest.items())


def _named(calls: Sequence[MadeCall]) -> str:
    shown = [f"{call.name}({json.dumps(call.arguments, ensure_ascii=False, default=str)[:80]})" for call in calls[:3]]
    return ", ".join(shown) + (" …" if len(calls) > 3 else "")
