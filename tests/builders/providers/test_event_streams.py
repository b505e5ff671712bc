"""An event stream that was not requested gives the same answers as a reply without streaming."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestofn.builders.providers.event_streams import assembled
from bestofn.builders.sampling.provider import Reply
from tests.faults.shapes import SHAPES
from tests.faults.transfers import stream

KEYS = st.sampled_from(["type", "index", "delta", "message", "choices", "content", "tool_calls", "done", "error"])
KINDS = ("message_start", "content_block_start", "content_block_delta", "message_delta", "message_stop")


def chunks(*deltas: dict) -> bytes:
    events = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    lines = [f"data: {json.dumps(event)}\n\n" for event in events]
    return ("".join(lines) + "data: [DONE]\n\n").encode()


@pytest.mark.parametrize("name", SHAPES)
@given(text=st.text(min_size=1))
def test_a_stream_has_the_completions_and_the_usage_of_the_whole_reply(name: str, text: str) -> None:
    shape = SHAPES[name]
    reply = shape.reply(text, 7, 2 if name == "chat" else 1)
    provider = shape.provider(model="m", base_url="http://127.0.0.1:1", api_key="k")  # type: ignore[call-arg]
    expected = provider.read(Reply(json.dumps(reply).encode()))
    assert provider.read(Reply(stream(name, reply))) == expected


@given(st.binary())
def test_no_bytes_raise_an_error(body: bytes) -> None:
    assembled(body)
    assembled(b"data: " + body)


@given(st.recursive(st.none() | st.integers() | st.text(), lambda one: st.lists(one) | st.dictionaries(KEYS, one)))
def test_no_events_raise_an_error(value: object) -> None:
    assembled(f"data: {json.dumps(value)}\n\ndata: {json.dumps({'choices': value})}\n".encode())
    assembled("".join(json.dumps({"type": kind, "index": 0, "delta": value}) + "\n" for kind in KINDS).encode())


def test_tool_calls_of_chat_are_joined_by_their_index() -> None:
    value = assembled(
        chunks(
            {"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "add", "arguments": ""}}]},
            {"tool_calls": [{"index": 1, "id": "b", "function": {"name": "sub", "arguments": "{}"}}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": '{"x"'}}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]},
        )
    )
    assert value is not None
    calls = value["choices"][0]["message"]["tool_calls"]
    assert [(call["id"], call["function"]) for call in calls] == [
        ("a", {"name": "add", "arguments": '{"x": 1}'}),
        ("b", {"name": "sub", "arguments": "{}"}),
    ]


def test_tool_arguments_and_thinking_of_messages_are_joined() -> None:
    events = [
        {"type": "message_start", "message": {"type": "message", "content": [], "usage": {"input_tokens": 3}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "so"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "name": "add", "input": {}}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"x"'}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": ": 1}"}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()
    value = assembled(body)
    assert value is not None
    assert value["content"] == [
        {"type": "thinking", "thinking": "so", "signature": "s"},
        {"type": "tool_use", "name": "add", "input": {"x": 1}},
    ]
    assert value["usage"] == {"input_tokens": 3, "output_tokens": 9}
    assert assembled(body.rpartition(b"event: message_stop")[0]) is None, "a stream without an end is incomplete"


def test_an_error_in_a_stream_is_the_reply() -> None:
    assert assembled(b'data: {"choices": []}\n\ndata: {"error": {"message": "overloaded"}}\n\n') == {
        "error": {"message": "overloaded"}
    }
