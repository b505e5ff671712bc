"""Removes thinking from the text of a model, and everything after the end of its turn."""

from __future__ import annotations

import re

_NAMES = r"think|thinking|thought|thoughts|reasoning|scratchpad|reflection|seed:think"
_MARK = re.compile(
    rf"<(?P<slash>/?)(?:{_NAMES})>|\[(?P<slash2>/?)THINK\]|◁(?P<slash3>/?)think▷|<\|(?P<word>begin|end)_of_thought\|>",
    re.IGNORECASE,
)
_HINTS = ("think>", "thinking>", "thought", "reasoning>", "scratchpad>", "reflection>", "[think]", "[/think]", "think▷")
_FINAL_CHANNEL = re.compile(r"<\|channel\|>final(?:\s*<\|constrain\|>\w+)?<\|message\|>")
_OTHER_CHANNEL = re.compile(r"<\|channel\|>(?:analysis|commentary)\b")
_ANSWER_TAG = re.compile(r"<(?:answer|final_answer)>", re.IGNORECASE)
_LAST_TOKENS = re.compile(r"(?:<\|\w{1,30}\|>\s*)+\Z")
_TURN = re.compile(
    r"<\|im_end\|>|<\|eot_id\|>|<\|endoftext\|>|<\|end\|>|<\|return\|>|<\|im_start\|>|</s>|<\|end_of_text\|>|\[/INST\]"
)


def visible(text: str) -> str:
    """Return ``text`` without its thinking and without the text after the end of the turn.

    Thinking without an end mark extends to the end of the text, or to an ``<answer>`` tag. If an end mark has no start
    mark, all text before it is thinking.
    """
    if "<|channel|>" in text:
        text = _final_channel(text)
    lowered = text.lower()
    if any(name in lowered for name in _HINTS):
        text = _without_thinking(text)
    if "<" not in text and "[/INST]" not in text:
        return text
    turn = _TURN.search(text, 1) if text else None
    text = text[: turn.start()] if turn and text[: turn.start()].strip() else text
    return _LAST_TOKENS.sub("", text) if text.endswith("|>") else text


def _final_channel(text: str) -> str:
    finals = list(_FINAL_CHANNEL.finditer(text))
    if finals:
        return text[finals[-1].end() :]
    other = _OTHER_CHANNEL.search(text)
    return text[: other.start()] if other else text


def _without_thinking(text: str) -> str:
    shown: list[str] = []
    start, hidden = 0, False
    for mark in _MARK.finditer(text):
        closes = bool(mark["slash"] or mark["slash2"] or mark["slash3"] or (mark["word"] or "").lower() == "end")
        if not closes and not hidden:
            shown.append(text[start : mark.start()])
            hidden = True
        elif closes:
            shown = shown if hidden else []
            start, hidden = mark.end(), False
    if hidden:
        tag = _ANSWER_TAG.search(text, start)
        return " ".join(shown) + (text[tag.start() :] if tag else "")
    return " ".join((*shown, text[start:])) if shown else text[start:]
