"""The verifier of dialogues: expected state, calls that change data, required outputs, and undecided cases."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bestofn.builders.formats.tool_calls import call, declaration
from bestofn.builders.records import Candidate, Query, Reference, Verdict
from bestofn.sandbox.tools.catalogue import CATALOGUE
from bestofn.sandbox.tools.replay import final_state
from bestofn.verifiers.tools.dialogue import DialogueVerifier
from bestofn.verifiers.tools.verifier import ToolVerifier

ADD = ("cart_add", {"product_id": "PRD-1002", "qty": 2})
FLIGHTS = {"type": "array", "items": {"type": "object", "properties": {"number": {"type": "string"}}}}
UPDATE = declaration(
    "update_booking", "", {"type": "object", "properties": {"id": {"type": "string"}, "flights": FLIGHTS}}
)
CHANGE = ("update_booking", {"id": "B1", "flights": [{"number": "7"}]})


def dialogue(*parts: str | tuple[str, Any], results: str = "{}") -> Candidate:
    """Return a recorded dialogue of texts and calls."""
    messages: list[dict[str, Any]] = []
    for number, part in enumerate(parts):
        if isinstance(part, str):
            messages += [{"role": "assistant", "content": part}, {"role": "user", "content": "Yes."}]
        else:
            made = call(part[0], part[1], f"c{number}")
            messages.append({"role": "assistant", "content": None, "tool_calls": [made]})
            messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": results})
    return Candidate(0, tuple(messages[:-1] if isinstance(parts[-1], str) else messages))


def verdict(candidate: Candidate, check: Any, tools: Any = (), **settings: Any) -> Verdict:
    query = Query("q", "dialogue", (), tuple(tools), Reference(checks={"dialogue": check}))
    return asyncio.run(DialogueVerifier(**settings).verify(query, candidate))


@pytest.mark.parametrize(
    ("parts", "outcome"),
    [
        (["Shall I?", ADD, "Your cart costs $39.80."], "pass"),
        ([("cart_add", {"product_id": "PRD-1002"}), ("cart_add", {"product_id": "PRD-1002"}), "39.8 in all."], "pass"),
        (["Shall I?", ADD, "Done."], "fail"),
        (["It is done: 39.80."], "fail"),
        ([ADD, ("cart_add", {"product_id": "PRD-1006"}), "39.80"], "fail"),
        ([("cart_add", '{"product_id": "PRD-1002"'), ADD, "39.80"], "pass"),
        ([ADD, ("teleport", {}), "39.80"], "pass"),
    ],
)
def test_the_calls_of_a_recorded_dialogue_are_run_again(parts: list[Any], outcome: str) -> None:
    state = asyncio.run(final_state([{"name": ADD[0], "arguments": ADD[1]}]))
    tools = [CATALOGUE["cart.add"].declaration()]
    found = verdict(dialogue(*parts), {"state": state, "outputs": ["39.80"]}, tools)
    assert found.outcome == outcome, found.explanation


def test_a_recorded_answer_with_a_known_state_passes_the_tool_verifier() -> None:
    state = asyncio.run(final_state([{"name": ADD[0], "arguments": ADD[1]}]))
    query = Query("q", "tool", (), (CATALOGUE["cart.add"].declaration(),), Reference(state=state))
    outcomes = [asyncio.run(ToolVerifier().verify(query, dialogue(*parts))).outcome for parts in ((ADD, "ok"), ("ok",))]
    assert outcomes == ["pass", "fail"]


def test_a_state_is_unknown_if_a_call_cannot_be_run_again() -> None:
    found = verdict(dialogue(("update_booking", {"id": "B1"}), "ok"), {"state": {}}, [UPDATE])
    assert (found.outcome, "cannot be run again" in found.explanation) == ("abstain", True)


@pytest.mark.parametrize(
    ("parts", "outcome"),
    [
        ([CHANGE, "ok"], "pass"),
        ([("get_booking", {"id": "B1"}), CHANGE, "ok"], "pass"),
        ([("update_booking", {"id": "B1", "flights": [{"number": "7", "from": "EWR"}]}), "ok"], "pass"),
        ([("update_booking", {"id": "B1", "flights": [{"number": "8"}]}), "ok"], "fail"),
        ([CHANGE, CHANGE, "ok"], "fail"),
        (["I did it."], "fail"),
        ([CHANGE, ("refund", {"id": "B1"}), "ok"], "abstain"),
    ],
)
def test_only_calls_that_change_data_are_compared(parts: list[Any], outcome: str) -> None:
    refund = declaration("refund", "", {"type": "object", "properties": {"id": {"type": "string"}}})
    check = {"actions": [{"name": CHANGE[0], "kwargs": CHANGE[1]}, {"name": "get_booking", "kwargs": {}}]}
    found = verdict(dialogue(*parts), check, [UPDATE, refund])
    assert found.outcome == outcome, found.explanation


def test_a_call_whose_result_is_an_error_changed_nothing() -> None:
    check = {"actions": [], "changing": ["update_booking"]}
    assert verdict(dialogue(CHANGE, "ok", results="Error: no such booking"), check, [UPDATE]).outcome == "pass"
    assert verdict(dialogue(CHANGE, "ok"), check, [UPDATE]).outcome == "fail"


def test_the_limit_on_user_messages_decides_nothing_unless_it_is_set() -> None:
    cut = Candidate(0, ({"role": "assistant", "content": "?"},), detail={"state": {}, "tool_stop": "user_limit"})
    check = {"state": {"cart": [{}]}}
    assert [verdict(cut, check, cut=cut_is).outcome for cut_is in ("abstain", "fail")] == ["abstain", "fail"]
    assert verdict(cut, {"state": {}}).outcome == "pass"


@pytest.mark.parametrize(
    "check", [None, "x", {}, {"outputs": ["1"]}, {"state": "x"}, {"actions": [3]}, {"actions": "f"}]
)
def test_a_query_without_a_readable_check_is_not_decided(check: Any) -> None:
    assert verdict(dialogue("ok"), check).outcome == "abstain"


texts = st.text(max_size=20)
values = st.recursive(st.none() | st.booleans() | st.integers() | texts, lambda one: st.lists(one, max_size=3)
                      | st.dictionaries(texts, one, max_size=3), max_leaves=6)  # fmt: skip


@settings(max_examples=30)
@given(st.lists(texts | st.tuples(texts, values | st.dictionaries(texts, values, max_size=3)), min_size=1, max_size=4))
def test_any_dialogue_gets_a_verdict(parts: list[Any]) -> None:
    written = [part if isinstance(part, str) else (part[0], json.dumps(part[1])) for part in parts]
    for check in ({"state": {}}, {"actions": [{"name": "f", "arguments": {}}]}):
        assert verdict(dialogue(*written), check, [UPDATE]).outcome in ("pass", "fail", "abstain")


@pytest.mark.parametrize(("text", "outcome"), [("You get 148.", "pass"), ("1, 4 and 8", "fail")])
@pytest.mark.parametrize("outputs", ["148", 148, ["148"]])
def test_one_output_is_a_list_of_one(outputs: object, text: str, outcome: str) -> None:
    assert verdict(dialogue(text), {"actions": [], "outputs": outputs}).outcome == outcome
