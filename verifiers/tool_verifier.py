"""Tool calls against what is known to be right: calls, final state of the world, facts of the final answer."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from bestofn.builders.formats.tool_calls import to_chat
from bestofn.builders.formats.written_calls import written_calls
from bestofn.builders.records import Candidate, Query, ReferenceSource, Verdict
from bestofn.verifiers.tool_matching import Matching, Order, difference, match
from bestofn.verifiers.tool_schema import MadeCall, examine
from bestofn.verifiers.tool_state import state_differences
from bestofn.verifiers.tool_values import contains_fact

Finding = tuple[bool, str]
"""Whether one part of the reference holds, and why or why not."""


class ToolVerifier:
    """Passes when everything the reference speaks of holds: its calls, its final state, its facts.

    ``Reference.calls`` are matched as a multiset (``order="any"``), position by position or as a subsequence; ``()``
    means that no call is right, not even one that is refused. Otherwise a call that the tools refused is not counted:
    the model was told, and may have made it anew.
    ``extra_calls="allow"`` forgives calls beyond the expected ones (look-ups that cost nothing).

    Without a reference that ``references`` trusts it abstains: a well-formed call need not be the right one. Only a
    call that no declared tool could take (unknown name, arguments that are no JSON object or break the schema) and
    that was left standing is ``fail`` even then, unless ``invalid="abstain"``. A reference that a model made
    (``Reference.source == "model"``) is not trusted by default: another right way of using the tools would be failed.

    Where a mock tool failed for a fault of ours, what would be ``fail`` is ``error``. ``types="lenient"`` takes ``"5"``
    for ``5``. ``detail`` holds precision and recall of the calls.
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

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        try:
            tools = [to_chat(tool) for tool in query.tools]
        except ValueError as error:
            return Verdict("error", 1.0, f"the query's tools cannot be read: {error}", self.name)
        calls = self._calls(candidate, tools)
        reference = query.reference
        findings: list[Finding] = []
        detail: dict[str, Any] = {"calls": len(calls)}
        if reference.source in self.references:
            if reference.calls is not None:
                findings.append(self._check_calls(reference.calls, calls, tools, candidate, detail))
            if reference.state is not None:
                findings.append(_check_state(reference.state, candidate, detail))
            if reference.facts:
                findings.append(_check_facts(reference.facts, candidate.text))
        if not findings:
            return self._without_reference(calls, detail)
        failed = [reason for holds, reason in findings if not holds]
        broken = _broken(candidate)
        if failed and broken:
            reason = f"a tool of ours failed ({broken}), so this says nothing of the answer: {'; '.join(failed)}"
            return Verdict("error", 0.0, reason, self.name, detail)
        if failed:
            return Verdict("fail", 0.95, "; ".join(failed), self.name, detail)
        return Verdict("pass", 0.95, "; ".join(reason for _, reason in findings), self.name, detail)

    def _calls(self, candidate: Candidate, tools: Sequence[Mapping[str, Any]]) -> list[MadeCall]:
        """The calls that stand: written ones when no native one was made, without those that were refused."""
        native = candidate.tool_calls
        standing = [call for call, refused in zip(native, _refused(candidate), strict=True) if not refused]
        if not native and self.written:
            names = [tool["function"]["name"] for tool in tools]
            standing = written_calls(candidate.text, names)
        return [examine(call, tools) for call in standing]

    def _check_calls(
        self,
        expected: Sequence[Mapping[str, Any]],
        calls: Sequence[MadeCall],
        tools: Sequence[Mapping[str, Any]],
        candidate: Candidate,
        detail: dict[str, Any],
    ) -> Finding:
        found = match(expected, calls, tools, order=self.order, lenient=self.lenient)
        detail |= {"expected": len(expected), "precision": found.precision, "recall": found.recall}
        detail["invalid"] = [call.problem for call in calls if call.problem]
        if not expected:
            tried = calls or [examine(call, tools) for call in candidate.tool_calls]  # refused ones count here
            if tried:
                return False, f"no call was expected; {_named(tried)} was made"
            if not candidate.text.strip():
                return False, "no call was expected, and there is no answer in words either"
            return True, "no call was expected and none was made"
        if found.missing:
            return False, _missing(expected, calls, found, tools, self.lenient)
        if found.extra and self.extra_calls == "fail":
            return False, f"{_named([calls[index] for index in found.extra])} was called beyond what was expected"
        one = len(expected) == 1
        return True, "the expected call was made" if one else f"all {len(expected)} expected calls were made"

    def _without_reference(self, calls: Sequence[MadeCall], detail: dict[str, Any]) -> Verdict:
        problems = [call.problem for call in calls if call.problem]
        detail["invalid"] = problems
        if problems and self.invalid == "fail":
            return Verdict("fail", 0.9, f"a call that no tool could take: {problems[0]}", self.name, detail)
        seen = f"{len(calls)} well-formed calls" if calls else "no call"
        return Verdict("abstain", 0.0, f"{seen}, and no trusted reference to compare with", self.name, detail)


def _refused(candidate: Candidate) -> list[bool]:
    """For each call of the trace whether the tools refused it.

    An id may stand for several calls, as servers that count anew in each turn send them: the first result of an id is
    of the first call with it, the second of the second.
    """
    results: defaultdict[str, deque[bool]] = defaultdict(deque)
    for result in candidate.detail.get("tool_results") or ():
        if isinstance(result, Mapping):
            results[str(result.get("tool_call_id"))].append(bool(result.get("refused")))
    told = (results[str(call.get("id"))] for call in candidate.tool_calls)
    return [of_id.popleft() if of_id else False for of_id in told]


def _broken(candidate: Candidate) -> str:
    """The failure of a mock tool for a fault of ours, if there was one in the trace."""
    for result in candidate.detail.get("tool_results") or ():
        if isinstance(result, Mapping) and result.get("source") == "failed":
            return f"{result.get('name')}: {result.get('error')}"
    return ""


def _check_state(expected: Mapping[str, Any], candidate: Candidate, detail: dict[str, Any]) -> Finding:
    differences = state_differences(expected, candidate.detail.get("state") or {})
    detail["state_differences"] = differences
    if differences:
        return False, "the final state differs: " + "; ".join(differences[:3])
    return True, "the final state is as expected"


def _check_facts(facts: Sequence[str], answer: str) -> Finding:
    absent = [fact for fact in facts if not contains_fact(answer, fact)]
    if absent:
        return False, f"the final answer does not say {', '.join(map(repr, absent))}"
    return True, f"the final answer says all {len(facts)} facts"


def _missing(
    expected: Sequence[Mapping[str, Any]],
    calls: Sequence[MadeCall],
    found: Matching,
    tools: Sequence[Mapping[str, Any]],
    lenient: bool,
) -> str:
    """Why the first expected call without a match has none: its nearest made call, argument by argument."""
    want = expected[found.missing[0]]
    if not calls:
        return f"no call was made; expected {want['name']}"
    left = [calls[index] for index in found.extra]
    reasons = [difference(want, call, tools, lenient=lenient) for call in left]
    named = [reason for reason in reasons if "name" not in reason or len(reason) > 1]
    if not named:
        made = f"; made were {_named(left)}" if left else ""
        return f"the expected call of {want['name']} is missing{made}"
    nearest = min(named, key=len)
    if not nearest:
        return f"{want['name']} was called out of order"
    return f"{want['name']}: " + "; ".join(f"{argument} {reason}" for argument, reason in nearest.items())


def _named(calls: Sequence[MadeCall]) -> str:
    shown = [f"{call.name}({json.dumps(call.arguments, ensure_ascii=False, default=str)[:80]})" for call in calls[:3]]
    return ", ".join(shown) + (" …" if len(calls) > 3 else "")
