"""Requests contain tool names and types that the service accepts, and replies contain the declared names again."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestofn.builders.formats.tool_calls import call, call_name, declaration
from bestofn.builders.formats.wire_tools import request_for_wire, wire_names, with_declared_names
from bestofn.builders.providers.anthropic_messages import AnthropicMessages
from bestofn.builders.providers.openai_chat import OpenAIChat
from bestofn.builders.providers.openai_responses import OpenAIResponses
from bestofn.builders.providers.scripted import Scripted
from bestofn.builders.records import Completion, Request
from bestofn.builders.sampling.cost import Ledger
from bestofn.builders.sampling.journal import Journal
from bestofn.builders.sampling.request_key import request_body
from bestofn.builders.sampling.sampler import sampler

ACCEPTED = re.compile(r"[A-Za-z0-9_-]{1,64}")
DOTTED = declaration("math.hypot", "", {"type": "dict", "properties": {"a": {"type": "float"}}})
SPACED = declaration("Get Weather", "", None)
TAKEN = declaration("math_hypot", "", None)
REQUEST = Request(
    messages=(
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": "", "tool_calls": [call("math.hypot", {"a": 3}, "c1")]},
        {"role": "tool", "tool_call_id": "c1", "name": "math.hypot", "content": "3"},
    ),
    tools=(DOTTED, SPACED, TAKEN),
)


@given(st.lists(st.text(min_size=1, max_size=80), max_size=8))
def test_every_name_is_accepted_and_unique(names: list[str]) -> None:
    sent = wire_names([declaration(name, "", None) for name in names])
    assert set(sent) == set(names)
    assert len(set(sent.values())) == len(sent)
    assert all(ACCEPTED.fullmatch(name) for name in sent.values())
    assert all(sent[name] == name for name in names if ACCEPTED.fullmatch(name))


@given(st.lists(st.text(min_size=1, max_size=80), min_size=1, max_size=6))
def test_the_declared_name_is_restored(names: list[str]) -> None:
    tools = [declaration(name, "", None) for name in names]
    for name, sent in wire_names(tools).items():
        reply = Completion({"role": "assistant", "content": "", "tool_calls": [call(sent, {}, "c")]}, "m")
        (made,) = with_declared_names(reply, tools).message["tool_calls"]
        assert call_name(made) == name


def test_every_part_of_a_request_has_the_name_that_is_sent() -> None:
    sent = request_for_wire(REQUEST)
    assert [tool["function"]["name"] for tool in sent.tools] == ["math_hypot_2", "Get_Weather", "math_hypot"]
    assert call_name(sent.messages[1]["tool_calls"][0]) == "math_hypot_2"
    assert sent.messages[2]["name"] == "math_hypot_2"
    assert request_for_wire(Request(messages=REQUEST.messages[:1])).messages == REQUEST.messages[:1]


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"type": "int"}, {"type": "integer"}),
        ({"type": "str", "enum": ["int"]}, {"type": "string", "enum": ["int"]}),
        ({"type": "list[int]"}, {"type": "array", "items": {"type": "integer"}}),
        ({"type": "List[Dict]"}, {"type": "array", "items": {"type": "object"}}),
        ({"type": ["int", "null"]}, {"type": ["integer", "null"]}),
        ({"type": "any", "description": "x"}, {"description": "x"}),
        ({"type": "Date"}, {}),
        ({"type": "array", "items": {"type": "float"}}, {"type": "array", "items": {"type": "number"}}),
        ({"anyOf": [{"type": "bool"}, {"type": "none"}]}, {"anyOf": [{"type": "boolean"}, {"type": "null"}]}),
        ({"type": "string", "required": True}, {"type": "string"}),
        (
            {"type": "dict", "properties": {"type": {"type": "int"}}, "required": ["type"]},
            {"type": "object", "properties": {"type": {"type": "integer"}}, "required": ["type"]},
        ),
    ],
)
def test_types_at_every_level_become_json_types(given: Any, sent: Any) -> None:
    for _ in range(2):
        schema = {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": given}}}}
        tool = declaration("f", "", schema)
        (wire,) = request_for_wire(Request(messages=(), tools=(tool,))).tools
        assert wire["function"]["parameters"]["properties"]["a"]["properties"]["b"] == sent
        given = sent  # JSON types are unchanged


@pytest.mark.parametrize("provider", [OpenAIChat, OpenAIResponses, AnthropicMessages])
def test_no_provider_sends_a_name_or_a_type_that_services_refuse(provider: Any) -> None:
    sent = json.dumps(provider(model="m", base_url="http://localhost:1").body(REQUEST, 1))
    assert "math.hypot" not in sent
    assert "Get Weather" not in sent
    assert '"float"' not in sent
    assert '"dict"' not in sent


def test_the_sampler_restores_names_also_from_the_journal_and_keys_do_not_change(tmp_path: Path) -> None:
    def reply(request: Request, seed: int) -> Completion:
        return Completion({"role": "assistant", "content": "", "tool_calls": [call("Get_Weather", {}, "c")]}, "m")

    async def drawn() -> str:
        journal = Journal(tmp_path / "j.sqlite")
        draws = sampler(Scripted(reply), journal, Ledger())
        async with journal, draws:
            (answer,) = await draws.draw(REQUEST)
        assert isinstance(answer, Completion)
        return call_name(answer.message["tool_calls"][0])

    assert asyncio.run(drawn()) == "Get Weather"
    assert asyncio.run(drawn()) == "Get Weather"
    assert b"math.hypot" in request_body(REQUEST)
