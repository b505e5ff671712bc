"""Verdicts on tool calls that are written in a text, in right and in wrong notation."""

from __future__ import annotations

import pytest

from bestofn.builders.formats.tool_calls import declaration
from tests.verifiers.tools.test_verifier import answer, expecting, verdict

WEATHER = declaration(
    "w", "Weather.", {"type": "object", "properties": {"city": {"type": "string"}, "m": {"type": "boolean"}}}
)


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ('<tool_call>{"name": "w", "arguments": {"city": "Oslo", "m": true}}</tool_call>', "pass"),
        ("<tool_call>{'name': 'w', 'arguments': {'city': 'Oslo', 'm': True}}</tool_call>", "pass"),
        ("[w(city='Oslo', m=True)]", "pass"),
        ("<function=w>{'city': 'Oslo', 'm': True}</function>", "pass"),
        ('<tool_call>{"name": "w", "arguments": {"city": "Oslo", "m": True}}</tool_call>', "abstain"),
        ('<tool_call>{"name": "w", "arguments": {"city": "Oslo", "m": true,}}</tool_call>', "abstain"),
        ('<function=w>{"city": "Oslo", "m": True}</function>', "abstain"),
    ],
)
def test_json_with_mistakes_does_not_pass(text: str, right: str) -> None:
    for city, outcome in (("Oslo", right), ("Bergen", "fail")):
        expected = expecting({"name": "w", "arguments": {"city": city, "m": True}})
        found = verdict(expected, answer(text), [WEATHER])
        assert found.outcome == outcome
        assert ("a server may not parse it" in found.explanation) == (outcome == "abstain")
