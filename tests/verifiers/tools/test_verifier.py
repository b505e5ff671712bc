"""The tool verifier on labelled pairs, and each of its policies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from bestofn.builders.formats.tool_calls import call, declaration
from bestofn.builders.records import Candidate, Query, Reference, Verdict
from bestofn.verifiers.tools.values import contains_fact
from bestofn.verifiers.tools.verifier import ToolVerifier, state_differences
from tests.growth import assert_linear

TABLES = Path(__file__).parents[1] / "tables"


def _object(required: Sequence[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


TEXT, LIST = {"type": "string"}, {"type": "array", "items": {"type": "number"}}
TOOLS = (
    declaration("w", "Weather.", _object(["city"], city=TEXT, units={"type": "string", "default": "metric"})),
    declaration("t", "Time.", _object(["zone"], zone=TEXT)),
    declaration("l", "A list.", _object([], xs=LIST)),
    declaration("o", "An object.", _object([], d={})),
    declaration("a.b", "A dotted name.", _object([])),
)


def rows(name: str) -> list[list[str]]:
    lines = (TABLES / name).read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines if line.strip()]


def answer(made: Sequence[Any] | str, text: str = "Done.", **detail: Any) -> Candidate:
    if isinstance(made, str):
        return Candidate(0, ({"role": "assistant", "content": made},), detail=detail)
    calls = [call(name, arguments, f"c{at}") for at, (name, arguments) in enumerate(made)]
    message = {"role": "assistant", "content": None if calls else text}
    messages: tuple[Mapping[str, Any], ...] = ({**message, "tool_calls": calls} if calls else message,)
    if calls and text:
        messages += tuple({"role": "tool", "tool_call_id": made["id"], "content": "{}"} for made in calls)
        messages += ({"role": "assistant", "content": text},)
    return Candidate(0, messages, detail=detail)


def verdict(reference: Reference, candidate: Candidate, tools: Sequence[Any] = TOOLS, **settings: Any) -> Verdict:
    query = Query("q", "tool", ({"role": "user", "content": "?"},), tools=tuple(tools), reference=reference)
    return asyncio.run(ToolVerifier(**settings).verify(query, candidate))


def expecting(*calls: Mapping[str, Any], **more: Any) -> Reference:
    return Reference(calls=calls, **more)


@pytest.mark.parametrize(("expected", "found", "label"), rows("tool_values.tsv"))
def test_values(expected: str, found: str, label: str) -> None:
    want = {"name": "f", "arguments": {"x": json.loads(expected), "anchor": 1}}
    made = [["f", {"x": json.loads(found), "anchor": 1}]]
    assert verdict(expecting(want), answer(made), tools=()).outcome == label


@pytest.mark.parametrize(("expected", "made", "label", "note"), rows("tool_answers.tsv"))
def test_answers(expected: str, made: str, label: str, note: str) -> None:
    is_native = made.startswith("[[") or made == "[]"
    said = json.loads(made) if is_native else made.replace("\\n", "\n").replace('\\\\"', '\\"')
    found = verdict(expecting(*json.loads(expected)), answer(said))
    assert found.outcome == label, found.explanation


def test_the_labelled_set_has_200_pairs() -> None:
    assert len(rows("tool_values.tsv")) + len(rows("tool_answers.tsv")) >= 200


WEATHER = {"name": "w", "arguments": {"city": "Oslo"}}
TIME = {"name": "t", "arguments": {"zone": "UTC"}}
OSLO, UTC = ("w", {"city": "Oslo"}), ("t", {"zone": "UTC"})


def test_precision_and_recall_are_told() -> None:
    found = verdict(expecting(WEATHER, TIME), answer([OSLO, ("l", {"xs": [1]}), ("l", {"xs": [2]})]))
    assert found.outcome == "fail"
    assert (found.detail["precision"], found.detail["recall"]) == (1 / 3, 1 / 2)


@pytest.mark.parametrize(
    ("order", "made", "outcome"),
    [
        ("any", [UTC, OSLO], "pass"),
        ("sequence", [UTC, OSLO], "fail"),
        ("sequence", [OSLO, UTC], "pass"),
        ("subsequence", [OSLO, UTC], "pass"),
        ("subsequence", [UTC, OSLO], "fail"),
    ],
)
def test_order(order: str, made: Any, outcome: str) -> None:
    assert verdict(expecting(WEATHER, TIME), answer(made), order=order).outcome == outcome


def test_extra_calls_can_be_allowed() -> None:
    made = answer([("l", {"xs": [1]}), OSLO, ("l", {"xs": [2]}), UTC])
    assert verdict(expecting(WEATHER, TIME), made).outcome == "fail"
    assert verdict(expecting(WEATHER, TIME), made, extra_calls="allow").outcome == "pass"
    assert verdict(expecting(WEATHER, TIME), made, extra_calls="allow", order="subsequence").outcome == "pass"


def test_lenient_types() -> None:
    made = answer([("l", {"xs": ["1", 2]})])
    want = {"name": "l", "arguments": {"xs": [1, 2]}}
    assert verdict(expecting(want), made).outcome == "fail"
    assert verdict(expecting(want), made, types="lenient").outcome == "pass"


def test_a_maximum_matching_is_found() -> None:
    loose = {"name": "w", "possible": {"city": ["Oslo", "Rome"]}}
    strict = {"name": "w", "possible": {"city": ["Oslo"]}}
    made = answer([("w", {"city": "Oslo"}), ("w", {"city": "Rome"})])
    assert verdict(expecting(loose, strict), made).outcome == "pass"


def test_calls_that_were_refused_and_made_anew_do_not_count() -> None:
    made = answer([("w", {"place": "Oslo"}), OSLO], tool_results=[{"tool_call_id": "c0", "refused": True}])
    assert verdict(expecting(WEATHER), made).outcome == "pass"
    assert verdict(expecting(WEATHER), answer([("w", {"place": "Oslo"}), OSLO])).outcome == "fail"
    tried = answer([("nothing", {})], tool_results=[{"tool_call_id": "c0", "refused": True}])
    assert verdict(expecting(), tried).outcome == "fail"  # where no call is right, trying one is wrong


def test_an_id_that_two_turns_share_is_paired_by_order() -> None:
    def told(name: str, refused: bool) -> dict[str, Any]:
        return {"tool_call_id": name, "name": "w", "refused": refused}

    def trace(*turns: tuple[str, Mapping[str, Any], bool]) -> Candidate:
        messages: list[Mapping[str, Any]] = []
        for name, arguments, _ in turns:
            messages.append({"role": "assistant", "content": "", "tool_calls": [call("w", arguments, name)]})
            messages.append({"role": "tool", "tool_call_id": name, "content": "{}"})
        messages.append({"role": "assistant", "content": "Done."})
        results = [told(name, refused) for name, _, refused in turns]
        return Candidate(0, tuple(messages), detail={"tool_results": results})

    wrong, right = ("call_0", {"place": "Oslo"}, True), ("call_0", {"city": "Oslo"}, False)
    assert verdict(expecting(WEATHER), trace(wrong, right)).outcome == "pass"
    assert verdict(expecting(WEATHER), trace(right, wrong)).outcome == "pass"
    assert verdict(expecting(WEATHER), trace(wrong, wrong)).outcome == "fail"
    assert verdict(expecting(WEATHER), trace(wrong, ("call_0", {"city": "Rome"}, False))).outcome == "fail"
    assert verdict(expecting(WEATHER), trace(wrong, ("call_1", {"city": "Rome"}, False), right)).outcome == "fail"
    assert verdict(Reference(), trace(right, wrong)).outcome == "abstain"
    assert verdict(Reference(), trace(wrong, ("call_0", {"place": "Oslo"}, False))).outcome == "fail"


def test_a_failure_of_our_own_tools_is_never_a_fail() -> None:
    broken = [{"tool_call_id": "c0", "name": "w", "source": "failed", "error": "no model", "refused": False}]
    assert (
        verdict(expecting(WEATHER, facts=("7",)), answer([OSLO], "I do not know.", tool_results=broken)).outcome
        == "error"
    )
    assert verdict(expecting(WEATHER), answer([OSLO], tool_results=broken)).outcome == "pass"


# --- without a reference ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "outcome"),
    [
        ([OSLO], "abstain"),
        ([], "abstain"),
        ([("nothing", {})], "fail"),
        ([("w", {})], "fail"),
        ([("w", {"city": 5})], "fail"),
        ([("w", {"city": "Oslo", "moon": True})], "fail"),
        ([("w", "{broken")], "fail"),
    ],
)
def test_without_a_reference(made: Any, outcome: str) -> None:
    found = verdict(Reference(), answer(made))
    assert found.outcome == outcome
    if outcome == "fail":
        assert verdict(Reference(), answer(made), invalid="abstain").outcome == "abstain"


def test_a_recovered_mistake_is_no_fault() -> None:
    made = answer([("w", {"place": "Oslo"}), OSLO], tool_results=[{"tool_call_id": "c0", "refused": True}])
    assert verdict(Reference(), made).outcome == "abstain"


def test_a_model_made_reference_is_not_trusted_unless_asked() -> None:
    reference = Reference(calls=(WEATHER,), source="model")
    assert verdict(reference, answer([UTC])).outcome == "abstain"
    assert verdict(reference, answer([UTC]), references=("gold", "model")).outcome == "fail"
    assert verdict(reference, answer([OSLO]), references=("gold", "model")).outcome == "pass"


def test_broken_schemas_refuse_nothing() -> None:
    tools = [declaration("w", "", {"type": "object", "properties": {"city": {"type": "town"}}})]
    assert verdict(Reference(), answer([OSLO]), tools=tools).outcome == "abstain"
    tools = [declaration("w", "", {"type": "object", "properties": {"city": {"$ref": "#/nowhere"}}})]
    assert verdict(Reference(), answer([OSLO]), tools=tools).outcome == "abstain"


def test_tools_that_cannot_be_read_are_an_error_not_a_fail() -> None:
    assert verdict(expecting(WEATHER), answer([OSLO]), tools=[{"parameters": {}}]).outcome == "error"


# --- facts and state --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "fact", "holds"),
    [
        ("It is 30 degrees.", "30", True),
        ("It is 300 degrees.", "30", False),
        ("It is 30.5 degrees.", "30", False),
        ("It costs 1,200 dollars", "1200", True),
        ("It costs **1200** dollars", "1200", True),
        ("Order ORD-1005 is placed", "ord-1005", True),
        ("Order ORD-10051 is placed", "ORD-1005", False),
        ("The  final\nscore", "final score", True),
        ("It’s done", "it's done", True),
        ("nothing", "", False),
        ("It is -5 degrees", "5", False),
        ("It is -5 degrees", "-5", True),
        ("It is \u22125 degrees", "-5", True),
        ("It is \u22125 degrees", "5", False),
        ("It is \u20135 degrees", "-5", True),
        ("(-5)", "5", False),
        ("x=-5", "-5", True),
        ("-5", "5", False),
        ("**-5** degrees", "5", False),
        ("It is +5 degrees", "5", True),
        ("It is -0.0 degrees", "0", True),
        ("pages 3-5", "5", True),
        ("pages 3\u20135", "3-5", True),
        ("pages 3-5", "-5", False),
        ("10%-15%", "15%", True),
        ("$5-$10", "$10", True),
        ("- 5 apples", "5", True),
        ("Oslo \u2014 5 degrees", "5", True),
        ("Oslo\u20145 degrees", "5", True),
        ("on 2026-03-20", "2026-03-20", True),
        ("on 2026\u201103\u201120", "2026-03-20", True),
        ("on 2026-03-20", "3", False),
        ("order ORD\u20111005", "ORD-1005", True),
        ("covid-19", "19", True),
        ("total $1,200.00", "1200", True),
        ("total $1,200.00", "$1200", True),
        ("total 1200 USD", "$1,200", True),
        ("total 1200 dollars", "1,200.00 USD", True),
        ("total 1.200,00 €", "1200", False),
        ("total €1,200", "$1200", False),
        ("total 1'200 €", "€1200", True),
        ("total 1\u202f200 €", "1200 euros", True),
        ("total -$1,200.00", "1200", False),
        ("total -$1,200.00", "$1200", False),
        ("total -$1,200.00", "-1200", True),
        ("total $-1,200", "-$1200", True),
        ("paid 5 dollars 30 cents", "5 dollars", True),
        ("paid in dollars, 5 percent of it", "dollars", True),
        ("5 percent", "percent", True),
        ("It is 45 %.", "45%", True),
        ("It is 45 percent", "45%", True),
        ("It is 45%", "45 percent", True),
        ("It is 45%", "45", True),
        ("It is 45", "45%", False),
        ("It is 0.45", "45%", False),
        ("It is 5.0.", "5", True),
        ("It is 5", "5.00", True),
        ("It is .5", "0.5", True),
        ("It is 5.05", "5.5", False),
        ("It is 50", "5", False),
        ("version 1.5.0", "1.5", False),
        ("10.0.0.1", "10", False),
        ("at 10:30", "10:30", True),
        ("9:00 \u201317:00", "17:00", True),
        ("-2026-03-20: the review", "2026-03-20", True),
        ("the root is $-5$", "-5", True),
        ("the root is $-5$", "5", False),
        ("the root is $5$", "5", True),
        ("room 007", "7", False),
        ("room 007", "007", True),
        ("2*3", "23", False),
        ("5\u00b2", "52", False),
        ("It is 10,000.0 m", "10000 m", True),
    ],
)
def test_facts(text: str, fact: str, holds: bool) -> None:
    assert contains_fact(text, fact) is holds


@pytest.mark.parametrize("piece", ["1,234", "1.0", "5 ", "$ ", "-$", "**", "1'", "5 percent ", "usd 5 dollars"])
def test_facts_of_long_texts_take_no_time(piece: str) -> None:
    assert_linear(lambda text: contains_fact(text, "-1,200.00 USD"), piece, 200_000)


def test_calls_and_facts_must_both_hold() -> None:
    reference = Reference(calls=(WEATHER,), facts=("7 degrees",))
    assert verdict(reference, answer([OSLO], "It is 7 degrees.")).outcome == "pass"
    assert verdict(reference, answer([OSLO], "It is cold.")).outcome == "fail"
    assert verdict(reference, answer([UTC], "It is 7 degrees.")).outcome == "fail"
    assert verdict(Reference(facts=("7 degrees",)), answer([], "It is 7 degrees.")).outcome == "pass"


@pytest.mark.parametrize(
    ("expected", "found", "differences"),
    [
        ({}, {}, 0),
        ({"todo": {"T-1": {"text": "x"}}}, {"todo": {"T-1": {"text": "x", "done": False}}}, 0),
        ({"todo": {"T-1": {"text": "x"}}}, {"todo": {"T-1": {"text": "y"}}}, 1),
        ({"todo": {"T-1": None}}, {"todo": {"T-1": None}}, 0),
        ({"todo": {"T-1": None}}, {}, 1),
        ({}, {"todo": {"T-1": {"text": "x"}}}, 1),
        ({"todo": [{"text": "x"}, {"text": "y"}]}, {"todo": {"T-8": {"text": "y"}, "T-9": {"text": "x"}}}, 0),
        ({"todo": [{"text": "x"}]}, {"todo": {"T-8": {"text": "y"}}}, 2),
        ({"todo": [{"text": "x"}]}, {"todo": {"T-8": {"text": "x"}, "T-9": {"text": "x"}}}, 1),
        ({"a": {"1": {"sum": 5}}}, {"a": {"1": {"sum": 5.0}}}, 0),
    ],
)
def test_states(expected: Any, found: Any, differences: int) -> None:
    assert len(state_differences(expected, found)) == differences


def test_the_final_state_decides() -> None:
    reference = Reference(state={"todo": [{"text": "Buy tea"}]})
    assert verdict(reference, answer([], state={"todo": {"T-5": {"text": "Buy tea"}}})).outcome == "pass"
    assert verdict(reference, answer([], state={})).outcome == "fail"


# --- calls that cannot be read, and recorded dialogues ----------------------------------------------------------------


@pytest.mark.parametrize("calls", [(WEATHER,), ()])
def test_a_call_that_cannot_be_read_is_never_a_fail(calls: Any) -> None:
    found = verdict(Reference(calls=calls), answer('<tool_call>{"name": "w", "arguments": {"city": "Os'))
    assert found.outcome == "abstain"
    assert "<tool_call>" in found.explanation


def trace(*turns: tuple[tuple[str, Any], str]) -> Candidate:
    """Return a recorded dialogue: in each turn, one call and the content of its result."""
    messages: list[Mapping[str, Any]] = []
    for at, ((name, arguments), content) in enumerate(turns):
        messages.append({"role": "assistant", "content": None, "tool_calls": [call(name, arguments, f"c{at}")]})
        messages.append({"role": "tool", "tool_call_id": f"c{at}", "content": content})
    return Candidate(0, (*messages, {"role": "assistant", "content": "Done."}))


MISSPELT = ("w", {"town": "Oslo"})


@pytest.mark.parametrize(
    "error",
    [
        '{"error": "unknown argument town"}',
        '{"success": false, "message": "no town"}',
        '{"status": "error"}',
        "Error: missing 1 required positional argument: 'city'",
        "ValidationError: town is unexpected",
        "Invalid argument town",
        "Traceback (most recent call last):",
    ],
)
def test_a_refused_and_corrected_call_of_a_recorded_trace_is_not_unexpected(error: str) -> None:
    assert verdict(expecting(WEATHER), trace((MISSPELT, error), (OSLO, "7"))).outcome == "pass"
    assert verdict(expecting(WEATHER), trace((MISSPELT, error), (OSLO, "7")), order="sequence").outcome == "pass"
    assert verdict(expecting(WEATHER), trace((OSLO, "7"), (MISSPELT, error))).outcome == "fail"
    assert verdict(expecting(WEATHER), trace((MISSPELT, error), (UTC, "12"))).outcome == "fail"


def test_a_call_whose_result_is_no_error_is_still_unexpected() -> None:
    for content in ("7", '{"errors_found": 0, "error": null}', "No error was found", ""):
        assert verdict(expecting(WEATHER), trace((("w", {"city": "Rome"}), content), (OSLO, "7"))).outcome == "fail"


def test_an_expected_call_counts_although_its_result_is_an_error() -> None:
    made = trace((OSLO, '{"error": "no such town"}'), (("w", {"city": "Rome"}), "9"))
    rome = {"name": "w", "arguments": {"city": "Rome"}}
    assert verdict(expecting(WEATHER, rome), made).outcome == "pass"
    assert verdict(expecting(rome), made).outcome == "pass"


def test_a_lookup_before_the_expected_call_is_no_fail() -> None:
    lookup, again = (("l", {"xs": [1]}), "[]"), (OSLO, "12 degrees")
    assert verdict(expecting(WEATHER), trace(lookup, again)).outcome == "abstain"
    assert verdict(expecting(WEATHER), trace(again, again)).outcome == "fail", "the expected tool is called twice"
    assert verdict(expecting(WEATHER), trace(again)).outcome == "pass"
    assert verdict(expecting(WEATHER, TIME), trace(lookup, again)).outcome == "fail", "an expected call is missing"


@pytest.mark.parametrize("tools", [TOOLS, ()])
def test_prose_before_a_fenced_call_is_no_answer_without_calls(tools: Sequence[Any]) -> None:
    text = 'I will look it up.\n\n```json\n{"name": "w", "arguments": {"city": "Oslo"}}\n```'
    expected = expecting({"name": "w", "arguments": {"city": "Oslo"}})
    assert verdict(expected, answer(text), tools).outcome == "pass"
    assert verdict(expected, answer(text.replace("Oslo", "Rome")), tools).outcome == "fail"


@pytest.mark.parametrize(
    ("stop", "text", "outcome"),
    [
        ("repeated", "", "abstain"),
        ("max_turns", "", "abstain"),
        ("max_turns", "It is warm.", "pass"),
        ("no_tools", "", "pass"),  # a benchmark of single turns
        ("answered", "", "pass"),
    ],
)
def test_a_dialogue_that_ends_at_a_limit_passes_only_with_an_answer(stop: str, text: str, outcome: str) -> None:
    made = answer([("w", {"city": "Oslo"})], text, tool_stop=stop)
    found = verdict(expecting({"name": "w", "arguments": {"city": "Oslo"}}), made)
    assert found.outcome == outcome, found
    wrong = verdict(expecting({"name": "w", "arguments": {"city": "Rome"}}), made)
    assert wrong.outcome == "fail"
