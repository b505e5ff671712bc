"""Tool declarations and calls are converted to the forms of services, and from the forms of datasets."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestofn.builders.formats import tool_calls as forms
from bestofn.builders.formats.written_calls import written_calls
from bestofn.sandbox.tools.catalogue import CATALOGUE

CHAT = [CATALOGUE[name].declaration() for name in sorted(CATALOGUE)][::6]  # 32 schemas of every domain


@pytest.mark.parametrize("tool", CHAT, ids=lambda tool: tool["function"]["name"])
def test_declarations_round_trip(tool: dict[str, Any]) -> None:
    assert forms.to_chat(tool) == tool
    responses = forms.to_responses(tool)
    back = forms.from_responses(responses)
    assert back["function"].pop("strict") is False
    assert back == tool
    assert forms.from_anthropic(forms.to_anthropic(tool)) == tool
    assert forms.to_chat(forms.to_anthropic(tool)) == tool


def test_xlam_as_the_dataset_writes_it() -> None:
    given_tool = {
        "name": "live_giveaways_by_type",
        "description": "Retrieve live giveaways.",
        "parameters": {
            "type": {"description": "The type of giveaways.", "type": "str", "default": "game"},
            "ids": {"description": "Ids.", "type": "List[int], optional"},
            "limit": {"description": "How many.", "type": "int"},
        },
    }
    found = forms.to_chat(given_tool)["function"]["parameters"]
    assert found["required"] == ["limit"]
    assert found["properties"]["ids"] == {"type": "array", "items": {"type": "integer"}, "description": "Ids."}
    assert found["properties"]["type"]["default"] == "game"


def test_bfcl_types_at_every_depth() -> None:
    parameters = {
        "type": "dict",
        "properties": {
            "xs": {"type": "array", "items": {"type": "float"}},
            "pair": {"type": "tuple", "items": {"type": "integer"}},
            "free": {"type": "any", "description": "Anything"},
            "type": {"type": "string", "enum": ["dict", "float"]},
        },
        "required": ["xs"],
    }
    found = forms.to_chat({"name": "f", "description": "", "parameters": parameters})["function"]["parameters"]
    assert found["type"] == "object"
    assert found["properties"]["xs"]["items"]["type"] == "number"
    assert found["properties"]["pair"]["type"] == "array"
    assert "type" not in found["properties"]["free"]
    assert found["properties"]["type"] == {"type": "string", "enum": ["dict", "float"]}


def test_a_declaration_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="has no name"):
        forms.to_chat({"description": "x"})


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,20}", fullmatch=True)
ARGUMENTS = st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), JSON, max_size=4)


@given(NAMES, ARGUMENTS)
def test_calls_round_trip(name: str, arguments: dict[str, Any]) -> None:
    made = forms.call(name, arguments, "call_1")
    assert forms.call_name(made) == name
    assert forms.call_arguments(made) == arguments
    assert forms.call_from_responses(forms.call_to_responses(made)) == made
    assert forms.call_from_anthropic(forms.call_to_anthropic(made)) == made


@given(NAMES, ARGUMENTS)
def test_hermes_calls_are_read_back(name: str, arguments: dict[str, Any]) -> None:
    body = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    if "</tool_call>" in body:
        return
    (made,) = written_calls(f"Let me see.\n<tool_call>\n{body}\n</tool_call>").calls
    assert (forms.call_name(made), forms.call_arguments(made)) == (name, arguments)


F = forms.declaration("f", "", None)


@given(st.text(max_size=300))
def test_no_text_breaks_the_reader(text: str) -> None:
    for made in written_calls(text, [F]).calls:
        assert forms.call_name(made)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 60_000,
        "-" * 190_000 + "1",
        "f(x=" + "9" * 5000 + ")",
        "<tool_call>x" + " " * 150_000 + "y",
        "<function=f>" * 16_000,
        "```\n" * 40_000,
        "[TOOL_CALLS]f[ARGS]{" * 9_000,
        "<|tool_call_begin|>f<|tool_call_argument_begin|>{" * 4_000,
        '<invoke name="f">' * 11_000,
        "to=functions.f {" * 12_000,
        "<a" * 90_000,
        "f(a='" * 40_000,
    ],
    ids=lambda text: text[:12],
)
def test_hostile_texts_end_soon(text: str) -> None:
    started = time.process_time()
    assert written_calls(text, [F]).calls == ()
    assert time.process_time() - started < 20  # quadratic reading would take minutes


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": Infinity}', "[]", '"x"', "3", "{", "\x00"])
def test_arguments_that_are_no_object(text: str) -> None:
    with pytest.raises(ValueError):
        forms.call_arguments(forms.call("f", text))
    assert forms.arguments_or_malformed(forms.call("f", text)) == {"_malformed": text}


def test_arguments_encoded_twice_are_read() -> None:
    assert forms.call_arguments(forms.call("f", json.dumps(json.dumps({"a": 1})))) == {"a": 1}
    assert forms.call_arguments(forms.call("f", "")) == {}


def test_reference_calls() -> None:
    assert forms.expected_from_bfcl([{"f": {"a": [1, ""]}}]) == ({"name": "f", "possible": {"a": [1, ""]}},)
    made = forms.call("f", {"a": 1})
    assert forms.expected_from_calls([made]) == ({"name": "f", "arguments": {"a": 1}},)
