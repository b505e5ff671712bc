"""Both transports send the same bytes under the same journal key, and the SDKs are imported only when they are used."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bestofn.builders.errors import (
    AuthenticationError,
    ConnectionFailed,
    ProviderError,
    RateLimitError,
    ServiceError,
)
from bestofn.builders.providers.http_service import HttpBatchService
from bestofn.builders.providers.sdk_transport import NO_KEY, own_errors
from bestofn.builders.sampling.cost import Ledger
from bestofn.builders.sampling.journal import Journal
from bestofn.builders.sampling.sampler import sampler
from tests.component import test_wire_shapes as wire
from tests.wire_server import Answer, Sent, WireServer

REPLIES = {
    "chat": wire.chat_reply(wire.said("3 \N{GREEK SMALL LETTER PI} 😀")),
    "responses": wire.response_reply(wire.output_message(wire.output_text("3"))),
    "messages": wire.message_reply(wire.TEXT),
}
MAKERS: dict[str, Callable[[str], HttpBatchService]] = {
    "chat": wire.chat,
    "responses": wire.responses,
    "messages": wire.messages,
}


def provider(shape: str, url: str, transport: Any) -> HttpBatchService:
    made = MAKERS[shape](url)
    made.transport = transport
    return made


def draw(journal_file: Path, made: HttpBatchService, n: int = 2) -> list[Any]:
    async def run() -> list[Any]:
        journal = Journal(journal_file)
        draws = sampler(made, journal, Ledger())
        async with journal, made, draws:
            return await draws.draw(wire.FULL, range(n))

    return asyncio.run(run())


@pytest.mark.parametrize("shape", REPLIES)
def test_both_transports_send_the_same_bytes(shape: str) -> None:
    sent: dict[str, Sent] = {}
    for transport in ("direct", "sdk"):
        _, sent[transport] = wire.against(
            lambda url, way=transport: provider(shape, url, way), REPLIES[shape], wire.FULL
        )
    assert sent["direct"].raw == sent["sdk"].raw
    assert sent["direct"].path == sent["sdk"].path
    same = {name.lower(): value for name, value in sent["direct"].headers.items() if name != "Host"}
    there = {name.lower(): value for name, value in sent["sdk"].headers.items()}
    assert {name: there[name] for name in same if name not in ("user-agent", "accept")} == {
        name: value for name, value in same.items() if name not in ("user-agent", "accept")
    }


@pytest.mark.parametrize("shape", REPLIES)
def test_a_run_may_change_its_transport_without_paying(shape: str, tmp_path: Path) -> None:
    with WireServer(lambda sent: Answer(REPLIES[shape])) as server:
        first = draw(tmp_path / "j.sqlite", provider(shape, server.url, "direct"))
        paid = len(server.sent)
        assert [one.text for one in draw(tmp_path / "j.sqlite", provider(shape, server.url, "sdk"))] == [
            one.text for one in first
        ]
        assert len(server.sent) == paid
        draw(tmp_path / "j.sqlite", provider(shape, server.url, "sdk"), n=3)
        assert len(server.sent) == paid + 1


@pytest.mark.parametrize("shape", REPLIES)
def test_a_server_without_a_key_gets_no_key(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)

    def keyless(url: str) -> HttpBatchService:
        made = provider(shape, url, "sdk")
        made._api_key = None
        return made

    _, sent = wire.against(keyless, REPLIES[shape], wire.PLAIN)
    assert NO_KEY not in str(sent.headers)
    assert {"authorization", "x-api-key"}.isdisjoint(map(str.lower, sent.headers))


@pytest.mark.parametrize("transport", ["direct", "sdk"])
def test_the_query_and_the_user_of_the_base_url_are_sent(transport: str) -> None:
    def behind_a_proxy(url: str) -> HttpBatchService:
        address = url.replace("http://", "http://me:secret@") + "/v1?deployment=a%20b&empty="
        return wire.OpenAIChat(model="m", base_url=address, transport=transport)  # type: ignore[arg-type]

    _, sent = wire.against(behind_a_proxy, REPLIES["chat"], wire.PLAIN)
    assert sent.path == "/v1/chat/completions"
    assert sent.query == {"deployment": "a b", "empty": ""}
    assert sent.headers["Authorization"] == "Basic bWU6c2VjcmV0"


@pytest.mark.parametrize("transport", ["direct", "sdk"])
def test_headers_that_are_not_ascii_lose_no_reply(transport: Any) -> None:
    headers: Any = {"X-Title": "Zürich", "X-Attempt": 5, "X-Unset": None}
    answer = Answer(REPLIES["chat"], headers={"x-place": "Zürich"})
    with WireServer(lambda sent: answer) as server:
        made = wire.OpenAIChat(model="m", base_url=server.url, extra_headers=headers, transport=transport)
        (completion,) = wire.exchange(made, wire.PLAIN)
    assert completion.text.startswith("3")
    sent = {name.lower(): value for name, value in server.sent[0].headers.items()}
    assert (sent["x-title"], sent["x-attempt"], sent.get("x-unset")) == ("Zürich", "5", None)


def test_the_sdk_retries_nothing() -> None:
    with WireServer(lambda sent: Answer({"error": {"message": "slow"}}, 429, {"retry-after": "3"})) as server:
        with pytest.raises(RateLimitError) as caught:
            wire.exchange(provider("messages", server.url, "sdk"), wire.PLAIN)
        assert len(server.sent) == 1
    assert caught.value.retry_after_s == 3


class TransportError(Exception):
    """An exception with the name of google-auth's exception for a server that does not answer."""


def converted(error: Exception) -> Exception:
    with pytest.raises(ProviderError) as caught, own_errors("provider"):
        raise error
    return caught.value


def test_the_errors_of_credentials_are_named() -> None:
    unreachable = converted(TransportError("no route"))
    assert isinstance(unreachable, ConnectionFailed)
    assert str(unreachable) == "the credentials could not be fetched: TransportError: no route"
    missing = converted(RuntimeError("Could not resolve AWS credentials from session"))
    assert isinstance(missing, AuthenticationError)
    assert "settings of provider" in str(missing)
    wrapped = RuntimeError("wrapped by the SDK")
    wrapped.__cause__ = ServiceError("it broke")
    assert converted(wrapped) is wrapped.__cause__


def test_the_sdks_are_loaded_only_when_they_are_used() -> None:
    program = """
import sys
import bestofn.scripts.build, bestofn.builders.config.objects
from bestofn.builders.providers import anthropic_messages, openai_chat, openai_responses
openai_chat.OpenAIChat(model="m", transport="sdk")
anthropic_messages.AnthropicMessages(model="m", transport="sdk")
sys.exit(len({"openai", "anthropic", "botocore", "google.auth", "azure.identity"} & set(sys.modules)))
"""
    assert subprocess.run([sys.executable, "-c", program], check=False, cwd=Path(__file__).parents[3]).returncode == 0
