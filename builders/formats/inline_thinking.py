"""Separates the thinking that a server leaves in the text: ``<think>…</think>`` before the answer.

Used by the providers.
"""

from __future__ import annotations

import re

from bestofn.builders.records import content_text

_OPEN = re.compile(r"\s*<(think|thinking|reasoning)>")


def without_thinking(content: object) -> tuple[str, str]:
    """(thinking, answer) of a message's content. Only a block at the beginning is thinking.

    A block without a closing tag was cut off, so the answer is empty. A closing tag without an opening one also ends
    the thinking, because the chat templates of some models open it in the prompt.
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
