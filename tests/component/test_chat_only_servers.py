"""``provider=openai`` with a server that has only Chat Completions."""

from __future__ import annotations

import asyncio
import logging

import pytest

from bestofn.builders.errors import RequestError
from bestofn.builders.providers.openai_responses import OpenAIResponses
from bestofn.builders.records import Completion, Request
from tests.wire_server import Answer, Sent, WireServer, chat_answer

REQUEST = Request(({"role": "user", "content": "1 + 2?"},))


def chat_only(sent: Sent) -> Answer:
    return chat_answer("3") if sent.path.endswith("/chat/completions") else Answer({"detail": "Not Found"}, status=404)


def ask(provider: OpenAIResponses, times: int) -> list[Completion]:
    async def run() -> list[Completion]:
        async with provider:
            return [one for _ in range(times) for one in await provider.sample(REQUEST, 1)]

    return asyncio.run(run())


def test_chat_completions_are_used_after_one_refusal(caplog: pytest.LogCaptureFixture) -> None:
    with WireServer(chat_only) as server, caplog.at_level(logging.WARNING):
        provider = OpenAIResponses(model="m", base_url=f"{server.url}/v1", api_key="k")
        completions = ask(provider, 3)
    assert [completion.text for completion in completions] == ["3"] * 3
    assert [sent.path.removeprefix("/v1") for sent in server.sent] == ["/responses", *["/chat/completions"] * 3]
    (message,) = caplog.messages
    assert "has no Responses API (status 404); Chat Completions is used instead" in message
    assert "provider=openai_chat" in message


def test_a_server_with_neither_api_is_named_with_the_first_refusal() -> None:
    with WireServer(lambda sent: Answer({"error": f"no {sent.path}"}, status=404)) as server:
        with pytest.raises(RequestError, match="no /v1/responses"):
            ask(OpenAIResponses(model="m", base_url=f"{server.url}/v1"), 1)
        assert len(server.sent) == 2


def test_other_refusals_are_not_tried_again() -> None:
    with WireServer(lambda sent: Answer({"error": "no such model"}, status=400)) as server:
        with pytest.raises(RequestError):
            ask(OpenAIResponses(model="m", base_url=f"{server.url}/v1"), 1)
        assert len(server.sent) == 1
