"""Verifies a whole dialogue by its final state and by the outputs that the user must get.

``conf/verifier/dialogue.yaml`` builds the verifier; ``docs/verifiers.md`` describes the check ``dialogue`` of a query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bestofn.builders.formats.listed_texts import listed_texts
from bestofn.builders.formats.tool_calls import call_name
from bestofn.builders.records import Candidate, JsonObject, Query, Tool, Verdict, content_text
from bestofn.verifiers.tools.declarations import MadeCall, declared, examine, same_name
from bestofn.verifiers.tools.matching import match
from bestofn.verifiers.tools.trace import failed_calls, refused_calls
from bestofn.verifiers.tools.values import contains_fact
from bestofn.verifiers.tools.verifier import Finding, check_state, decided

READING = frozenset(
    [
        "calculate", "count", "describe", "fetch", "find", "get", "list", "lookup", "query", "read", "search", "show",
        "think", "transfer_to_human_agents", "view",
    ]
)  # fmt: skip
"""Names of tools that only read data, or the first words of such names."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected results of a dialogue. ``state`` and ``actions`` are None if the query does not give them.

    ``actions`` are the expected calls that change data. ``changing`` are the names of all tools that change data.
    """

    state: JsonObject | None
    actions: tuple[JsonObject, ...] | None
    changing: tuple[str, ...]
    outputs: tuple[str, ...]


class DialogueVerifier:
    """Passes a dialogue whose final state, changing calls and outputs are those of ``reference.checks["dialogue"]``.

    Calls that only read data are not compared, because different look-ups may lead to the same result. An output may be
    in any text of the assistant. ``cut`` is the outcome for a dialogue that reached the limit on user messages and does
    not pass.
    """

    name = "dialogue"

    def __init__(self, *, cut: Literal["abstain", "fail"] = "abstain") -> None:
        self.cut: Literal["abstain", "fail"] = cut

    def verified_by(self, query: Query) -> str:
        """Return the name of this verifier if the query has a readable check ``dialogue``; otherwise ""."""
        return self.name if expected_of(query) else ""

    async def verify(self, query: Query, candidate: Candidate) -> Verdict:
        """Return the verdict on a dialogue after a comparison with each part of the check."""
        expected = expected_of(query)
        if expected is None:
            return Verdict("abstain", 0.0, "the query has no check 'dialogue' that can be read", self.name)
        detail: dict[str, object] = {}
        findings: list[Finding] = []
        if expected.state is not None:
            findings.append(await check_state(expected.state, query, candidate, detail))
        if expected.actions is not None:
            findings.append(_check_actions(expected, query.tools, candidate))
        if expected.outputs:
            findings.append(_check_outputs(expected.outputs, candidate))
        parts = ("state", "actions", "outputs")
        detail["rule"] = "; ".join(part for part in parts if getattr(expected, part) not in (None, ()))
        verdict = decided(findings, candidate, self.name, detail)
        is_cut = candidate.detail.get("tool_stop") == "user_limit" and self.cut == "abstain"
        if verdict.outcome == "fail" and is_cut:
            reason = f"the dialogue ended at the limit user_turns: {verdict.explanation}"
            return Verdict("abstain", 0.0, reason, self.name, detail)
        return verdict


def expected_of(query: Query) -> Expected | None:
    """Return the check ``dialogue`` of ``query``; None if it is missing or cannot be read."""
    check: object = (query.reference.checks or {}).get("dialogue")
    if not isinstance(check, Mapping):
        return None
    state, actions = check.get("state"), check.get("actions")
    if (state is None and actions is None) or not isinstance(state, Mapping | None):
        return None
    if actions is not None and not (isinstance(actions, list | tuple) and all(map(_is_action, actions))):
        return None
    calls = None if actions is None else tuple(_actions(actions))
    return Expected(state, calls, listed_texts(check.get("changing")), listed_texts(check.get("outputs")))


def _is_action(action: object) -> bool:
    return isinstance(action, Mapping) and isinstance(action.get("name"), str)


def _actions(actions: Sequence[JsonObject]) -> Iterator[JsonObject]:
    """Yield expected calls. The arguments may be under ``arguments``, or under ``kwargs`` as in tau-bench."""
    for action in actions:
        yield {"name": str(action["name"]), "arguments": action.get("arguments") or action.get("kwargs") or {}}


def _check_actions(expected: Expected, tools: Sequence[Tool], candidate: Candidate) -> Finding:
    """Compare the calls that changed data. A call that was refused or whose result is an error changed nothing."""
    kinds = [(call, kind_of(call_name(call), expected)) for call in _effective(candidate)]
    made = [_declared_part(examine(call, tools), tools) for call, kind in kinds if kind == "changes"]
    wanted = [call for call in expected.actions or () if kind_of(str(call["name"]), expected) == "changes"]
    matching = match([_normal(call, tools) for call in wanted], made, tools)
    if matching.missing:
        return False, f"no call equals the expected {_shown(wanted[matching.missing[0]])}"
    if matching.extra:
        return False, f"{made[matching.extra[0]].name} was called with other arguments than expected, or too often"
    unknown = [call_name(call) for call, kind in kinds if kind == "unknown"]
    if unknown:
        return None, f"it is not known whether {unknown[0]} changes data; list the tools that change data in 'changing'"
    return True, f"the {len(wanted)} expected calls that change data were made" if wanted else "nothing was changed"


def kind_of(name: str, expected: Expected) -> Literal["changes", "reads", "unknown"]:
    """Return whether the tool ``name`` changes data.

    If ``expected.changing`` is empty, the result is "reads" if ``READING`` contains the name or its first word.
    """
    if any(same_name(name, known) for known in expected.changing):
        return "changes"
    if expected.changing or name in READING or name.replace(".", "_").split("_")[0].lower() in READING:
        return "reads"
    return "changes" if any(same_name(name, str(call["name"])) for call in expected.actions or ()) else "unknown"


def _effective(candidate: Candidate) -> list[JsonObject]:
    without_effect = zip(refused_calls(candidate), failed_calls(candidate), strict=True)
    skipped = [refused or failed for refused, failed in without_effect]
    return [call for call, skip in zip(candidate.tool_calls, skipped, strict=True) if not skip]


def _normal(call: JsonObject, tools: Sequence[Tool]) -> JsonObject:
    made = _declared_part(MadeCall(str(call["name"]), call["arguments"]), tools)
    return {**call, "arguments": made.arguments}


def _declared_part(made: MadeCall, tools: Sequence[Tool]) -> MadeCall:
    """Return the call without undeclared fields of nested objects, because the tool ignores such fields."""
    function = declared(tools, made.name)
    if function is None or made.arguments is None:
        return made
    declared_arguments = (function.get("parameters") or {}).get("properties") or {}
    arguments = {name: _kept(value, declared_arguments.get(name)) for name, value in made.arguments.items()}
    return MadeCall(made.name, arguments, made.problem, made.kind)


def _kept(value: object, schema: object) -> object:
    if not isinstance(schema, Mapping):
        return value
    if isinstance(value, Mapping) and isinstance(properties := schema.get("properties"), Mapping):
        return {key: _kept(one, properties[key]) for key, one in value.items() if key in properties}
    if isinstance(value, list):
        return [_kept(one, schema.get("items")) for one in value]
    return value


def _check_outputs(outputs: Sequence[str], candidate: Candidate) -> Finding:
    texts = [content_text(one.get("content")) for one in candidate.messages if one.get("role") == "assistant"]
    absent = [output for output in outputs if not any(contains_fact(text, output) for text in texts)]
    if absent:
        return False, f"no text of the assistant contains {', '.join(map(repr, absent))}"
    return True, f"the texts of the assistant contain the required outputs ({len(outputs)})"


def _shown(call: JsonObject) -> str:
    return f"{call['name']}({str(call['arguments'])[:120]})"
