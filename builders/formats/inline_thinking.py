"""Separates thinking and answer in one text of a model: ``<think>…</think>answer``, or the Harmony format.

Used by the providers, by ``recorded_dialogue`` and by ``written_calls``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from bestofn.builders.formats.harmony import HarmonyTurn, harmony_turn, pieces
from bestofn.builders.records import content_text

_OPEN = re.compile(
    r"\s*(?:<(?P<tag>think|thinking|thought|reasoning|seed:think)>|(?P<think>\[THINK\])|(?P<cohere><\|START_THINKING\|>))"
)


@dataclass(frozen=True, slots=True)
class AnswerParts:
    """The thinking, the text and the tool calls of one message. ``detail`` is for ``Completion.detail``."""

    thinking: str
    text: str
    calls: tuple[dict[str, Any], ...] = ()
    detail: dict[str, object] = field(default_factory=dict)


def answer_parts(content: object) -> AnswerParts:
    """Split the content of a message into thinking, text and calls.

    Only texts in the Harmony format give ``calls``; ``written_calls`` parses calls in other forms.
    """
    turn = harmony_turn(content_text(content))
    if turn is None:
        return AnswerParts(*without_thinking(content))
    return AnswerParts(turn.thinking, turn.text, turn.calls, turn.detail)


def without_thinking(content: object) -> tuple[str, str]:
    """Split the content of a message into (thinking, answer). Only a block at the beginning counts as thinking.

    If the closing tag is missing, the text was cut off, so the answer is empty. The opening tag may be missing,
    because some chat templates put it in the prompt. The text before the closing tag is then the thinking.

    In the Harmony format, the analysis messages are thinking. The answer consists of the final message and the tool
    calls, in the notation of Harmony.
    """
    text = content_text(content)
    opened = _OPEN.match(text)
    if opened:
        closing = f"</{opened['tag']}>" if opened["tag"] else "[/THINK]" if opened["think"] else "<|END_THINKING|>"
        thought, closed, answer = text[opened.end() :].partition(closing)
        return thought.strip(), answer.lstrip() if closed else ""
    if (turn := harmony_turn(text)) is not None:
        return turn.thinking, _of_harmony(turn)
    if "</think>" in text and "<think>" not in text:
        thought, _, answer = text.partition("</think>")
        return thought.strip(), answer.lstrip()
    return "", text


def _of_harmony(turn: HarmonyTurn) -> str:
    """Return the visible text of ``turn``. Tool calls stay in the text, so that ``written_calls`` can parse them."""
    if not turn.calls:
        return turn.text
    kept = [
        replace(message, content=message.content.strip() or "{}") if message.is_call else message
        for message in turn.messages
        if message.is_call or message.channel != "analysis"
    ]
    return "".join(text for _, text in pieces(kept))
