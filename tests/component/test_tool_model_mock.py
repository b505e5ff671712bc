"""A model invents the result of a tool, over real HTTP. One request is sent, and the journal stores its reply."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bestofn.builders.formats.tool_calls import declaration
from bestofn.builders.providers.anthropic_messages import AnthropicMessages
from bestofn.builders.providers.openai_chat import OpenAIChat
from bestofn.builders.records import ToolResult
from bestofn.builders.sampling.cost import Ledger
from bestofn.builders.sampling.journal import Journal
from bestofn.builders.sampling.sampler import sampler
from bestofn.sandbox.tools.mock_tools import MockTools
from tests.wire_server import Answer, Sent, WireServer

TOOL = declaration("zorgify_plumbus", "", {"type": "object", "properties": {"name": {"type": "string"}}})
PLAYED = 'Of course:\n```json\n{"zorgified": "Ada",}\n```'


def chat(sent: Sent) -> Answer:
    choice = {"index": 0, "message": {"role": "assistant", "content": PLAYED}, "finish_reason": "stop"}
    return Answer({"id": "1", "model": "m", "choices": [choice], "usage": {}})


def messages(sent: Sent) -> Answer:
    body = {"id": "1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
    usage = {"input_tokens": 1, "output_tokens": 1}
    return Answer({**body, "content": [{"type": "text", "text": PLAYED}], "usage": usage})


@pytest.mark.parametrize(
    ("provider", "answer", "path"),
    [
        (lambda url: OpenAIChat(model="m", base_url=f"{url}/v1", api_key="k"), chat, "/v1/chat/completions"),
        (lambda url: AnthropicMessages(model="m", base_url=url, api_key="k"), messages, "/v1/messages"),
    ],
    ids=["chat", "anthropic"],
)
def test_one_request_for_all_siblings_and_runs(provider: Any, answer: Any, path: str, tmp_path: Path) -> None:
    async def run(url: str) -> list[ToolResult]:
        made = provider(url)
        async with made, Journal(tmp_path / "journal.sqlite") as journal:
            drawing = sampler(made, journal, Ledger())
            async with drawing:
                template = MockTools(sampler=drawing)
                worlds = [template.fresh(0, [TOOL]) for _ in range(3)]
                first = await asyncio.gather(*(world.call("zorgify_plumbus", {"name": "Ada"}) for world in worlds))
                return [*first, await worlds[0].call("zorgify_plumbus", {"name": "Ada"})]

    with WireServer(answer) as server:
        results = [asyncio.run(run(server.url)) for _ in range(2)]
    assert {result.content for part in results for result in part} == {'{"zorgified": "Ada"}'}
    assert [result.source for result in results[0]] == ["llm", "llm", "llm", "cache"]
    assert [sent.path for sent in server.sent] == [path]
