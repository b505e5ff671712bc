"""Ground truth in the words of a solution: the last box, or what stands after ####."""

from __future__ import annotations

import re

THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
BOX = re.compile(r"\\f?boxed\s*(?=\{)|\\boxed\s+")


def last_boxed(text: str) -> str | None:
    """The content of the last ``\\boxed{…}`` outside the thinking, braces nested; None when it is not closed."""
    text = THINKING.sub("", text)
    matches = list(BOX.finditer(text))
    if not matches:
        return None
    start = matches[-1].end()
    if start >= len(text) or text[start] != "{":
        word = re.match(r"[^\s$]+", text[start:])
        return word.group().rstrip(".,") if word else None
    depth = 0
    for index in range(start, len(text)):
        if text[index] == "\\":
            continue
        if text[index] in "{}" and (index == 0 or text[index - 1] != "\\"):
            depth += 1 if text[index] == "{" else -1
            if depth == 0:
                return text[start + 1 : index].strip()
    return None


def after_hashes(text: str) -> str | None:
    """The text after the last ``####`` of its line, thousands separators removed (GSM8K)."""
    found = re.findall(r"####[ \t]*(.+)", THINKING.sub("", text))
    if not found:
        return None
    answer = found[-1].strip()
    if not answer:
        return None
    return answer.replace(",", "") if re.fullmatch(r"-?\$?[\d,]+(?:\.\d+)?", answer) else answer
