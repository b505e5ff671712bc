"""Converts recorded messages to the format of messages that bestofn sampled. ``providers.recorded`` uses it.

Answers in datasets may contain thinking, Anthropic content blocks (``thinking``, ``tool_use``, ``tool_result``) or the
former ``function_call`` of Chat Completions. In bestofn's format, a message has a text, and calls under ``tool_calls``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bestofn.builders.formats.harmony import harmony_turn
from bestofn.builders.formats.inline_thinking import answer_parts
from bestofn.builders.formats.tool_calls import call, call_from_anthropic
from bestofn.builders.records import JsonObject, Message, content_text

_THINKING_KEYS = ("reasoning_content", "reasoning", "thinking")


@dataclass(frozen=True, slots=True)
class RecordedDialogue:
    """The messages of a recorded answer. The thinking is not in the messages but in ``reasoning``.

    ``cut`` is true if the last assistant message ends within its thinking, so it has no answer. ``harmony`` contains
    the Harmony messages of answers in that format.
    """

    messages: tuple[Message, ...]
    reasoning: str
    cut: bool
    harmony: tuple[JsonObject, ...] = ()


def recorded_dialogue(messages: Sequence[JsonObject]) -> RecordedDialogue:
    """Convert recorded ``messages``. The thinking of all assistant messages is moved to ``reasoning``."""
    converted: list[Message] = []
    thoughts: list[str] = []
    cut = False
    for message in messages:
        if message.get("role") != "assistant":
            converted += _results(message)
            continue
        answer, thought = _assistant(message)
        cut = bool(thought) and not answer.get("tool_calls") and not content_text(answer.get("content")).strip()
        thoughts.append(thought)
        converted.append(answer)
    joined = "\n\n".join(thought for thought in thoughts if thought)
    return RecordedDialogue(tuple(converted), joined, cut, tuple(_harmony(messages)))


def _harmony(messages: Sequence[JsonObject]) -> Iterator[JsonObject]:
    for message in messages:
        turn = harmony_turn(content_text(message.get("content"))) if message.get("role") == "assistant" else None
        yield from (one.record() for one in turn.messages) if turn else ()


def _assistant(message: JsonObject) -> tuple[Message, str]:
    """Return (assistant message without its thinking, its thinking)."""
    thoughts = [str(message[key]) for key in _THINKING_KEYS if isinstance(message.get(key), str) and message[key]]
    answer: dict[str, Any] = {key: value for key, value in message.items() if key not in _THINKING_KEYS}
    content = message.get("content")
    blocks = _blocks(content)
    calls = list(message.get("tool_calls") or ())
    if any(block.get("type") in ("tool_use", "thinking", "redacted_thinking") for block in blocks):
        calls += [call_from_anthropic(block) for block in blocks if block.get("type") == "tool_use"]
        thoughts += [str(block.get("thinking") or "") for block in blocks if block.get("type") == "thinking"]
        content = content_text([block for block in blocks if block.get("type") == "text"])
    if not calls and isinstance(message.get("function_call"), Mapping):
        former = answer.pop("function_call")
        calls = [call(str(former.get("name") or ""), former.get("arguments") or "{}")]
    parts = answer_parts(content)
    if parts.thinking or parts.text != content_text(content):
        content = parts.text
        thoughts.append(parts.thinking)
    calls = calls or list(parts.calls)
    answer["content"] = content
    if calls:
        answer["tool_calls"] = calls
    return answer, "\n\n".join(part for part in thoughts if part)


def _results(message: JsonObject) -> list[Message]:
    """Convert a message that is not the assistant's. Each ``tool_result`` block becomes a message of its own."""
    blocks = _blocks(message.get("content"))
    results = [block for block in blocks if block.get("type") == "tool_result"]
    if message.get("role") == "function":
        return [{**message, "role": "tool"}]
    if not results:
        return [message]
    converted: list[Message] = [
        {
            "role": "tool",
            "tool_call_id": str(block.get("tool_use_id") or ""),
            "content": content_text(block.get("content")),
            **({"is_error": True} if block.get("is_error") else {}),
        }
        for block in results
    ]
    rest = [block for block in blocks if block.get("type") != "tool_result"]
    return [*converted, {**message, "content": rest}] if rest else converted


def _blocks(content: object) -> list[Mapping[str, Any]]:
    if not isinstance(content, Sequence) or isinstance(content, str):
        return []
    return [block for block in content if isinstance(block, Mapping)]
