"""Access to the library ``openai-harmony``, with the vocabulary in the package ``bpe-openai``."""

from __future__ import annotations

import gzip
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

from openai_harmony import (
    Author,
    Conversation,
    DeveloperContent,
    HarmonyEncoding,
    HarmonyEncodingName,
    Message,
    ReasoningEffort,
    RenderConversationConfig,
    Role,
    SystemContent,
    TextContent,
    ToolDescription,
    load_harmony_encoding,
)

from bestofn.builders.formats.harmony import MARKS, HarmonyMessage, Piece
from bestofn.builders.formats.harmony_prompt import token_ids
from bestofn.builders.records import Tool


def load_encoding(folder: Path) -> HarmonyEncoding:
    """Return the library's encoding of gpt-oss. The library reads the vocabulary in ``folder`` and checks its hash."""
    spec = importlib.util.find_spec("bpe_openai")
    assert spec
    assert spec.submodule_search_locations
    packed = Path(spec.submodule_search_locations[0]) / "data" / "o200k_base.tiktoken.gz"
    (folder / "o200k_base.tiktoken").write_bytes(gzip.decompress(packed.read_bytes()))
    with mock.patch.dict("os.environ", TIKTOKEN_ENCODINGS_BASE=str(folder)):
        return load_harmony_encoding(HarmonyEncodingName.HARMONY_GPT_OSS)


class Library:
    """Renders and parses Harmony messages with the library ``openai-harmony``."""

    def __init__(self, encoding: HarmonyEncoding) -> None:
        self.encoding = encoding
        self._special = {mark: encoding.encode(mark, allowed_special="all")[0] for mark in MARKS}

    def ids(self, parts: Sequence[Piece]) -> list[int]:
        """Return the token ids of our rendered ``parts``, with the vocabulary of the library."""
        return token_ids(iter(parts), self._special, lambda text: self.encoding.encode(text, disallowed_special=()))

    def rendered(self, messages: Sequence[Message]) -> list[int]:
        """Return the token ids of ``messages`` as the library renders them, including all thinking."""
        config = RenderConversationConfig(auto_drop_analysis=False)
        return self.encoding.render_conversation(Conversation.from_messages(messages), config=config)

    def prompted(self, messages: Sequence[Message]) -> list[int]:
        """Return the token ids of the prompt for the next answer, as the library renders it."""
        return self.encoding.render_conversation_for_completion(Conversation.from_messages(messages), Role.ASSISTANT)

    def parsed(self, ids: Sequence[int], role: Role | None = None) -> list[HarmonyMessage]:
        """Return the messages that the library parses, converted to ``HarmonyMessage``."""
        return [_ours(message) for message in self.encoding.parse_messages_from_completion_tokens(ids, role)]


def system(effort: str, date: str) -> Message:
    """Return the library's system message with the reasoning ``effort`` and the current ``date``."""
    content = (
        SystemContent.new().with_reasoning_effort(ReasoningEffort(effort.title())).with_conversation_start_date(date)
    )
    return Message.from_role_and_content(Role.SYSTEM, content)


def developer(instructions: str, tools: Sequence[Tool]) -> Message:
    """Return the library's developer message with ``instructions`` and the declarations of ``tools``."""
    content = DeveloperContent.new()
    if instructions:
        content = content.with_instructions(instructions)
    if tools:
        content = content.with_function_tools([described(tool) for tool in tools])
    return Message.from_role_and_content(Role.DEVELOPER, content)


def described(tool: Tool) -> ToolDescription:
    """Return the library's declaration of ``tool``."""
    function = tool["function"]
    return ToolDescription.new(
        function["name"], function.get("description") or "", parameters=function.get("parameters")
    )


def plain(message: HarmonyMessage) -> Message:
    """Convert ``message`` to the library's message class."""
    author = Author(role=Role(message.role), name=message.name or None)
    made = Message.from_author_and_content(author, message.content)
    made.channel, made.recipient = message.channel or None, message.recipient or None
    made.content_type = message.content_type or None
    return made


def _ours(message: Message) -> HarmonyMessage:
    (content,) = message.content
    assert isinstance(content, TextContent)
    return HarmonyMessage(
        message.author.role.value,
        content.text,
        message.channel or "",
        message.recipient or "",
        message.content_type or "",
        message.author.name or "",
    )
