"""Separates a model's thinking from its answer, if both are in one text: ``<think>…</think>answer``.

Used by the providers, by ``recorded_dialogue`` and by ``written_calls``.
"""

from __future__ import annotations

import re

from bestofn.builders.records import content_text

_OPEN = re.compile(
    r"\s*(?:<(?P<tag>think|thinking|thought|reasoning|seed:think)>|(?P<think>\[THINK\])|(?P<cohere><\|START_THINKING\|>))"
)
_HARMONY = re.compile(
    r"<\|channel\|>analysis<\|message\|>(?P<thought>.*?)(?:<\|end\|>|(?=<\|start\|>|<\|channel\|>)|\Z)", re.DOTALL
)
_HARMONY_FINAL = re.compile(
    r"<\|channel\|>final[^<]*<\|message\|>(?P<answer>.*?)(?:<\|return\|>|<\|end\|>|\Z)", re.DOTALL
)


def without_thinking(content: object) -> tuple[str, str]:
    """Split a message's content into (thinking, answer). Only a block at the beginning counts as thinking.

    If the closing tag is missing, the text was cut off, so the answer is empty. Some chat templates put the opening tag
    in the prompt. So if only this tag is missing, the text up to the closing tag is thinking. In the Harmony format,
    the analysis messages are thinking, and the final message is the answer.
    """
    text = content_text(content)
    opened = _OPEN.match(text)
    if opened:
        closing = f"</{opened['tag']}>" if opened["tag"] else "[/THINK]" if opened["think"] else "<|END_THINKING|>"
        thought, closed, answer = text[opened.end() :].partition(closing)
        return thought.strip(), answer.lstrip() if closed else ""
    if "<|channel|>analysis<|message|>" in text:
        return _of_harmony(text)
    if "</think>" in text and "<think>" not in text:
        thought, _, answer = text.partition("</think>")
        return thought.strip(), answer.lstrip()
    return "", text


def _of_harmony(text: str) -> tuple[str, str]:
    thought = "\n\n".join(part["thought"].strip() for part in _HARMONY.finditer(text))
    rest = _HARMONY.sub("", text)
    final = _HARMONY_FINAL.search(rest)
    if final:
        return thought, final["answer"].strip()
    return thought, rest if "to=" in rest else ""
