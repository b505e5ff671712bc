"""Thinking that a server leaves in the text (``<think>…</think>`` before the answer), kept apart."""

from __future__ import annotations

import re
from typing import Any

from bestofn.builders.records import content_text

_OPEN = re.compile(r"\s*<(think|thinking|reasoning)>")


def without_thinking(content: Any) -> tuple[str, str]:
    """(thinking, answer) of a message's content. Only a leading block is thinking.

    A block that is never closed is a thought that was cut off: there is no answer. A closing tag without an opening
    one (the template of some models opens it in the prompt) ends a thought as well.
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
