"""Verifies whether an answer rightly answers, calls a tool, asks, or says that it cannot answer.

``conf/verifier/calling.yaml`` builds the verifier; ``docs/tools.md`` describes it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bestofn.builders.formats.tool_calls import to_chat
from bestofn.builders.formats.written_calls import written_calls
from bestofn.builders.records import Candidate, JsonObject, Outcome, Query, Verdict
from bestofn.verifiers.calibration import calibrated
from bestofn.verifiers.stance.patterns import Reading, read_stance
from bestofn.verifiers.tools.declarations import MadeCall, examine

Decision = Literal["answer", "call", "ask", "decline"]
OF_STANCE: Mapping[str, Decision] = {
    "answers": "answer",
    "calls": "call",
    "asks": "ask",
    "flags": "decline",
    "refuses": "decline",
}
"""Stance of ``verifiers.stance.patterns`` → decision. An answer that hedges or says nothing is undecided."""
NAMES: Mapping[str, Decision] = {
    "answer": "answer", "direct": "answer",
    "call": "call", "tool_call": "call",
    "ask": "ask", "request_for_info": "ask",
    "decline": "decline", "cannot_answer": "decline",
}  # fmt: skip
"""Name in a row → decision; the longer names are those of When2Call."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The right decisions. With ``calls_allowed``, tool calls before the last message do not count as the decision."""

    decisions: tuple[Decision, ...]
    calls_allowed: bool = False


class WhenToCall:
    """Verifies that an answer takes the decision in ``reference.checks["calling"]``.

    The check is ``answer``, ``call``, ``ask`` or ``decline``, a list of them if several are right, or an object with
    ``decision`` and ``calls: allowed``. A call of a tool that is not declared, or with invalid arguments, always fails.
    """

    name = "calling"

    def verified_by(self, query: Query) -> str:
        """Return the name of this verifier if the query names a decision; otherwise ""."""
        return self.name if expected_of(query) else ""

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        """Return the verdict. ``detail["decision"]`` is the decision of the answer."""
        started = time.perf_counter()
        expected = expected_of(query)
        if expected is None:
            return Verdict("abstain", 0.0, "the query names no decision about calls", self.name)
        calls = _examined(query, candidate)
        invented = next((made.problem for made in calls if made.problem), "")
        found, reading = decision_of(query, candidate, expected)
        outcome: Outcome = "abstain" if not found else "pass" if found in expected.decisions else "fail"
        doubt = "" if found == "call" else doubt_about_calls(query, candidate, expected)
        explanation = f"decision: {found or reading.stance}; expected {' or '.join(expected.decisions)}"
        if invented:
            outcome, explanation = "fail", invented
        elif doubt:
            outcome, explanation = "abstain", doubt
        elif outcome == "pass" and any(made.undecided for made in calls):
            outcome, explanation = "abstain", "the validation of a call's arguments exceeds the limits"
        detail: dict[str, object] = {
            "rule": f"{found or 'undecided'}; {reading.rule}",
            "decision": found,
            "invented_call": invented,
        }
        if outcome == "pass" and found == "decline":
            detail["refusal"] = {"right": True}
        seconds = time.perf_counter() - started
        return calibrated(Verdict(outcome, 0.0, explanation, self.name, detail, seconds))


def expected_of(query: Query) -> Expected | None:
    """Return the right decisions about ``query``; None if its check names no decision or an unknown one."""
    value: Any = (query.reference.checks or {}).get("calling")
    allowed = False
    if isinstance(value, Mapping):
        allowed, value = value.get("calls") == "allowed", value.get("decision")
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, Sequence) or not names or not all(name in NAMES for name in names):
        return None
    return Expected(tuple(NAMES[name] for name in names), allowed)


def decision_of(query: Query, candidate: Candidate, expected: Expected) -> tuple[Decision | None, Reading]:
    """Return the decision of an answer (None if it is undecided) and the stance of its text."""
    ends_with_call = bool(candidate.messages and candidate.messages[-1].get("tool_calls"))
    if ends_with_call or (candidate.tool_calls and not expected.calls_allowed):
        return "call", Reading("calls", "call")
    reading = read_stance(candidate.text, "", query.text, query.tools)
    return OF_STANCE.get(reading.stance), reading


def doubt_about_calls(query: Query, candidate: Candidate, expected: Expected) -> str:
    """Return why the text may contain a tool call that could not be read as one; "" if there is no such text.

    A call in a quotation is reported only if a call is expected.
    """
    if candidate.tool_calls:
        return ""
    written = written_calls(candidate.text, query.tools)
    return written.unread or (written.quoted if "call" in expected.decisions else "")


def _examined(query: Query, candidate: Candidate) -> list[MadeCall]:
    """Return the calls of the answer, each with its ``problem``: the tool is undeclared or the arguments are invalid.

    If the query declares no tools, as in a GRPO table, only the decision counts.
    """
    try:
        tools = [to_chat(tool) for tool in query.tools]
    except ValueError:
        return []
    calls: Sequence[JsonObject] = candidate.tool_calls or written_calls(candidate.text, tools).calls
    return [examine(call, tools) for call in calls]
