"""The simulated user: which messages its model sees, when the dialogue ends, and which replies are errors."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bestofn.builders.errors import ServiceError
from bestofn.builders.records import Completion, Query, Request
from bestofn.sandbox.tools.simulated_user import GREETING, SimulatedUser, seen_by_user
from tests.builders.stages.test_rollout import FakeSampler

DIALOGUE = (
    {"role": "system", "content": "Policy."},
    {"role": "user", "content": "Cancel it."},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
    {"role": "tool", "tool_call_id": "1", "content": "{}"},
    {"role": "assistant", "content": "Which?"},
    {"role": "assistant", "content": "Which one?"},
)


def replied(answer: Any, instruction: object = "You are Ada.") -> tuple[str | None, Request]:
    sampler = FakeSampler(lambda request, index: answer)
    query = Query("q", "dialogue", (), metadata={"user_instruction": instruction})
    reply = SimulatedUser().of_query(query, sampler)
    assert reply is not None
    return asyncio.run(reply(DIALOGUE)), sampler.asked[0][0]


def test_the_user_sees_the_texts_with_exchanged_roles_and_neither_policy_nor_calls() -> None:
    text, request = replied("The lamp.")
    assert text == "The lamp."
    assert "You are Ada." in request.messages[0]["content"]
    assert request.messages[1:] == (
        {"role": "user", "content": GREETING},
        {"role": "assistant", "content": "Cancel it."},
        {"role": "user", "content": "Which?\n\nWhich one?"},
    )


def test_a_dialogue_that_starts_with_the_assistant_keeps_alternating_roles() -> None:
    seen = seen_by_user(({"role": "assistant", "content": "Hi."}, {"role": "user", "content": "Ho."}))
    assert [message["role"] for message in seen] == ["user", "assistant"]


@pytest.mark.parametrize("answer", ["###STOP###", "Thanks! ###STOP###", "<think>done</think>###STOP###"])
def test_the_user_ends_the_dialogue(answer: str) -> None:
    assert replied(answer)[0] is None


@pytest.mark.parametrize("answer", ["", "<think>hm</think>", "<think>never closed", ServiceError("down")])
def test_a_user_without_a_text_is_a_failure(answer: Any) -> None:
    with pytest.raises(ServiceError):
        replied(Completion({"role": "assistant", "content": answer}, "m") if isinstance(answer, str) else answer)


@pytest.mark.parametrize("instruction", [None, "", " ", 3])
def test_a_query_without_an_instruction_has_no_user(instruction: object) -> None:
    query = Query("q", "dialogue", (), metadata={"user_instruction": instruction})
    assert SimulatedUser().of_query(query, FakeSampler(lambda request, index: "")) is None
