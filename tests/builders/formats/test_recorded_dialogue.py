"""Thinking is removed from recorded answers, and calls in the forms of other APIs are converted."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bestofn.builders.formats.inline_thinking import without_thinking
from bestofn.builders.formats.tool_calls import call_arguments, call_name
from bestofn.builders.providers.recorded import Recorded
from bestofn.builders.records import Candidate, Query, Reference
from bestofn.verifiers.tools.verifier import ToolVerifier


def recorded(*answers: Any) -> list[Candidate]:
    query = Query("q", "math", ({"role": "user", "content": "1 + 1?"},), metadata={"candidates": list(answers)})
    return Recorded().answers_for(query)


@pytest.mark.parametrize(
    ("text", "thought", "answer"),
    [
        ("<think>\nIs it 3?\n</think>\n\nIt is 2.", "Is it 3?", "It is 2."),
        ("Is it 3?</think>It is 2.", "Is it 3?", "It is 2."),
        ("<think>Is it 3? It is", "Is it 3? It is", ""),
        ("<thought>Is it 3?</thought>It is 2.", "Is it 3?", "It is 2."),
        ("[THINK]Is it 3?[/THINK]It is 2.", "Is it 3?", "It is 2."),
        ("<|START_THINKING|>Is it 3?<|END_THINKING|>It is 2.", "Is it 3?", "It is 2."),
        (
            "<|channel|>analysis<|message|>Is it 3?<|end|><|start|>assistant<|channel|>final<|message|>It is 2.<|return|>",
            "Is it 3?",
            "It is 2.",
        ),
        ("<|channel|>analysis<|message|>Is it 3? It is", "Is it 3? It is", ""),
        ("It is 2. The tag <think> is not used.", "", "It is 2. The tag <think> is not used."),
    ],
)
def test_thinking_is_taken_out_of_recorded_answers(text: str, thought: str, answer: str) -> None:
    assert without_thinking(text) == (thought, answer)
    for form in (text, {"content": text}, [{"role": "assistant", "content": text}]):
        (candidate,) = recorded(form)
        assert (candidate.reasoning, candidate.text) == (thought, answer)
        assert candidate.stop_reason == ("stop" if answer else "length")


def test_thinking_under_a_key_of_its_own() -> None:
    for key in ("reasoning_content", "reasoning"):
        (candidate,) = recorded({"role": "assistant", "content": "It is 2.", key: "Is it 3?"})
        assert candidate.reasoning == "Is it 3?"
        assert candidate.messages == ({"role": "assistant", "content": "It is 2."},)


def test_an_empty_answer_without_thinking_is_not_cut() -> None:
    assert recorded("")[0].stop_reason == "stop"


ANTHROPIC = [
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "The weather.", "signature": "s"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": "Oslo"}},
        ],
    },
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "7"}]}],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "It is 7 degrees."}]},
]


def test_anthropic_blocks_become_calls_and_results() -> None:
    (candidate,) = recorded(ANTHROPIC)
    (made,) = candidate.tool_calls
    assert (call_name(made), call_arguments(made), made["id"]) == ("get_weather", {"city": "Oslo"}, "t1")
    assert candidate.reasoning == "The weather."
    assert candidate.messages[0]["content"] == "I look."
    assert candidate.messages[1] == {"role": "tool", "tool_call_id": "t1", "content": "7"}
    assert candidate.text == "It is 7 degrees."
    query = Query("q", "tool", (), reference=Reference(calls=({"name": "get_weather", "arguments": {"city": "Oslo"}},)))
    assert asyncio.run(ToolVerifier().verify(query, candidate)).outcome == "pass"


def test_the_former_function_call_is_read() -> None:
    (candidate,) = recorded(
        [
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"a": 1}'}},
            {"role": "function", "name": "f", "content": "2"},
            {"role": "assistant", "content": "2"},
        ]
    )
    assert [(call_name(made), call_arguments(made)) for made in candidate.tool_calls] == [("f", {"a": 1})]
    assert [message["role"] for message in candidate.messages] == ["assistant", "tool", "assistant"]
