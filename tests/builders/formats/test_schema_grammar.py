"""A grammar of a JSON Schema matches valid JSON, and every text that it generates is valid."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bestofn.builders.formats.byte_grammar import COMPLETE, advance, matches, next_bytes, start
from bestofn.builders.formats.json_schema import problem
from bestofn.builders.formats.schema_grammar import call_grammar, schema_grammar
from bestofn.builders.formats.written_calls import written_calls

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 6},
        "age": {"type": "integer"},
        "tags": {"type": "array", "items": {"enum": ["a", "bé", 3]}, "minItems": 1, "maxItems": 3},
        "parent": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
        "mood": {"type": ["number", "boolean"]},
    },
    "required": ["name", "tags", "parent"],
    "additionalProperties": False,
}
GRADES = {
    "type": "object",
    "properties": {
        "score": {"type": "integer", "minimum": -3, "maximum": 10},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        "place": {"type": "integer", "minimum": 1},
        "weight": {"type": "number", "minimum": 0},
    },
    "required": ["score", "confidence", "place", "weight"],
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**14), 10**14) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=8,
)


def written(schema: dict[str, Any], seed: int) -> bytes:
    """Return a random text that the grammar of ``schema`` allows. Bytes that close a value are preferred."""
    rng, text, state = random.Random(seed), bytearray(), start(schema_grammar(schema))
    while state != COMPLETE:
        allowed = sorted(next_bytes(state))
        if None in state and rng.random() < 0.5:
            break
        closing = [byte for byte in allowed if chr(byte) in '"]}n0']
        byte = rng.choice(closing if closing and rng.random() < 0.6 else allowed)
        text.append(byte)
        state = advance(state, byte)
    return bytes(text)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("schema", [GRADES, PERSON, {"type": "object"}, {"type": "array", "items": {"type": "number"}}])
def test_every_text_of_the_grammar_is_valid(schema: dict[str, Any], seed: int) -> None:
    assert problem(schema, json.loads(written(schema, seed))) == ""


@settings(max_examples=40)
@given(JSON)
def test_any_json_value_is_matched_by_the_empty_schema(value: object) -> None:
    text = json.dumps(value, ensure_ascii=False).replace("\x7f", " ")
    plain = "\\u" not in text
    assert matches(schema_grammar({}), text.encode()) == plain


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ('{"name":"x","tags":["a"],"parent":null}', True),
        ('{"name": "x", "age": 3, "tags": ["bé", 3], "parent": {"name":"y","tags":[3],"parent":null}}', True),
        ('{"name":"x","tags":["a"],"parent":null,"mood":-1.5e-3}', True),
        ('{"name":"","tags":["a"],"parent":null}', False),
        ('{"name":"1234567","tags":["a"],"parent":null}', False),
        ('{"name":"x","tags":[],"parent":null}', False),
        ('{"name":"x","tags":["a","a","a","a"],"parent":null}', False),
        ('{"name":"x","parent":null}', False),
        ('{"name":"x","tags":["a"],"parent":null,"other":1}', False),
        ('{"name":"x","tags":["a"],"parent":null', False),
    ],
)
def test_a_schema_decides(text: str, valid: bool) -> None:
    assert matches(schema_grammar(PERSON), text.encode()) == valid


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string", "pattern": "a+"}, "pattern"),
        ({"type": "integer", "minimum": 3}, "minimum"),
        ({"type": "number", "minimum": 0.5, "maximum": 1}, "minimum is 0.5"),
        ({"type": "number", "minimum": -1, "maximum": 1}, "minimum is -1"),
        ({"type": "string", "minimum": 3}, "minimum"),
        ({"oneOf": [{"type": "null"}]}, "oneOf"),
        ({"type": "thing"}, "thing"),
        ({"$ref": "#/$defs/none"}, "does not contain"),
        ({"$ref": "#"}, "allows no value"),
        ({"type": "array", "maxItems": 10**9}, "maxItems"),
        ({"type": "array", "minItems": 3, "maxItems": 2}, "minItems"),
        ({"type": "object", "properties": {"a": "string"}}, "expected an object"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(schema: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        schema_grammar(schema)


def test_the_schemas_of_the_judges_are_supported() -> None:
    from bestofn.builders.stages.steps_form import SCHEMA as STEPS
    from bestofn.reward import judge_reward, listwise_reward, process_reward
    from bestofn.verifiers.judge import persona, verifier

    for schema in (
        STEPS,
        *(one.SCHEMA for one in (judge_reward, listwise_reward, process_reward, persona, verifier)),
    ):
        assert start(schema_grammar(schema))


def test_a_call_of_the_grammar_is_read_as_this_call() -> None:
    weather = {"name": "weather", "parameters": {"properties": {"city": {"enum": ["Bern"]}}, "required": ["city"]}}
    odd = {"name": "odd", "parameters": {"properties": {"day": {"type": "string", "pattern": "."}}}}
    tools = [{"type": "function", "function": one} for one in (weather, odd)]
    text = '<tool_call>\n{"name": "weather", "arguments": {"city":"Bern"}}\n</tool_call>'
    assert matches(call_grammar(tools), text.encode())
    assert not matches(call_grammar(tools), text.replace("Bern", "Rome").encode())
    assert matches(call_grammar(tools), b'<tool_call>\n{"name": "odd", "arguments": {"day":[1]}}\n</tool_call>')
    (call,) = written_calls(text, tools).calls
    assert call["function"]["name"] == "weather"
