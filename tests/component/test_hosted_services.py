"""Presets of hosted services: each gets its own key and no other, and no field that it refuses."""

from __future__ import annotations

import asyncio

import pytest

from bestofn.builders.errors import AuthenticationError
from bestofn.builders.providers.hosted import Fireworks, Gemini, Groq, HostedChat, Mistral, OpenRouter, Together
from bestofn.builders.records import Request, Sampling
from tests.wire_server import Sent, WireServer, chat_answer

SERVICES = (OpenRouter, Together, Fireworks, Groq, Gemini, Mistral)
ASKED = Request(messages=({"role": "user", "content": "?"},), sampling=Sampling(seed=3, max_tokens=9, logprobs=True))


@pytest.fixture(autouse=True)
def key_of_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai-1234567890")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-openai")


def sent_to(service: type[HostedChat]) -> Sent:
    async def ask(url: str) -> None:
        async with service(model="m", base_url=f"{url}/v1", max_n=1) as provider:
            await provider.sample(ASKED, 1)

    with WireServer(lambda sent: chat_answer("3")) as server:
        asyncio.run(ask(server.url))
    (sent,) = server.sent
    return sent


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_gets_its_own_key_and_the_plain_fields(
    service: type[HostedChat], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(service.key_variable, "key-of-the-service")
    sent = sent_to(service)
    assert sent.headers["Authorization"] == "Bearer key-of-the-service"
    assert "of-openai" not in repr(sent.headers)
    assert sent.body["max_tokens"] == 9
    assert not {"n", "max_completion_tokens"} & set(sent.body)


@pytest.mark.parametrize("service", SERVICES)
def test_without_its_key_nothing_is_sent(service: type[HostedChat], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(service.key_variable, raising=False)
    provider = service(model="m", max_n=1)
    assert provider.base_url == service.public_url

    async def opened() -> None:
        async with provider:
            pass

    with pytest.raises(AuthenticationError, match=service.key_variable):
        asyncio.run(opened())


def test_the_fields_that_a_service_refuses_are_not_sent() -> None:
    groq, mistral = sent_to(Groq).body, sent_to(Mistral).body
    assert ("logprobs" in groq, groq["seed"]) == (False, 3)
    assert ("seed" in mistral, mistral["random_seed"], mistral["logprobs"]) == (False, 3, True)
