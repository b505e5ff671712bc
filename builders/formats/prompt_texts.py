"""Adds text to system prompts, and joins paragraphs."""

from __future__ import annotations

from collections.abc import Sequence

from bestofn.builders.records import Message, content_text


def with_system_text(messages: Sequence[Message], before: str, after: str = "") -> tuple[Message, ...]:
    """Return ``messages`` with ``before`` and ``after`` added around the text of the system prompt.

    If ``messages`` have no system prompt, a new one is added, unless both texts are empty.
    """
    own, rest = "", tuple(messages)
    if rest and rest[0].get("role") in ("system", "developer"):
        own, rest = content_text(rest[0].get("content")), rest[1:]
    text = paragraphs((before, own, after))
    return ({"role": "system", "content": text}, *rest) if text else rest


def paragraphs(parts: Sequence[str]) -> str:
    """Join the non-empty ``parts`` with blank lines."""
    return "\n\n".join(part for part in parts if part)
