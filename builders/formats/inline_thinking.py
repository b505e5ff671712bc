"""Separates a model's thinking from its answer, if the server returns both in one text: ``<think>…</think>answer``.

The providers use this module.
"""

from __future__ import annotations

import re

from bestofn.builders.records import content_text

_OPEN = re.compile(r"\s*<(think|thinking|reasoning)>")


def without_thinking(content: object) -> tuple[str, str]:
    """Split a message's content into (thinking, answer). Only a block at the beginning counts as thinking.

    If the closing tag is missing, the text was cut off, so the answer is empty. Some chat templates put the opening tag
    in the prompt. So if only the opening tag is missing, the text up to the closing tag is thinking.
    """
    text = content_text(content)
    opened = _OPEN.match(text)
    if opened:
        thought, closing, answer = text[opened.end() :].partition(f"</{opened[1]}>")
        return thought.strip(), answer.lstrip() if closing else ""
    if "</think>" in text and "<think>" not in text:
        thought, _, answer = text.partition("</think>")
        return thought.strip(), answer.lstrip()
    return "", text
