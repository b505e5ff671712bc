"""Extracts the final answer from a solution: the last ``\\boxed{…}``, the text after ``####``, or a short text."""

from __future__ import annotations

import re

THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
BOX = re.compile(r"\\f?boxed\s*(?=\{)|\\boxed\s+")
BRACE = re.compile(r"\\.|[{}]", re.DOTALL)  # a backslash escapes the next character, also another backslash

MAX_STATED_CHARS = 60
MAX_STATED_WORDS = 4
CODE = re.compile(r"\b(?:return|def|print|import|lambda|select|console|function)\b", re.IGNORECASE)
WORD = re.compile(r"(?<!\\)\b[^\W\d_]{2,}")  # without LaTeX commands

THOUSANDS = re.compile(r"-?\$?\d{1,3}(?:,\d{3})+(?:\.\d+)?")


def last_boxed(text: str) -> str | None:
    """Return the content of the last ``\\boxed{…}`` outside the thinking; None if there is none or it is not closed."""
    text = THINKING.sub("", text)
    matches = list(BOX.finditer(text))
    if not matches:
        return None
    start = matches[-1].end()
    if start >= len(text) or text[start] != "{":
        word = re.match(r"[^\s$]+", text[start:])
        return word.group().rstrip(".,") if word else None
    depth = 0
    for mark in BRACE.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(mark[0], 0)
        if depth == 0:
            return text[start + 1 : mark.start()].strip()
    return None


def after_hashes(text: str) -> str | None:
    """Return the text between the last ``####`` and the end of its line (GSM8K). Thousands separators are removed."""
    matches = re.findall(r"####[ \t]*(.+)", THINKING.sub("", text))
    if not matches:
        return None
    answer = matches[-1].strip()
    if not answer:
        return None
    return answer.replace(",", "") if THOUSANDS.fullmatch(answer) else answer


def final_answer(text: str) -> str:
    """Return the final answer in a reference: its last box, the text after ``####``; without a mark, the text."""
    return last_boxed(text) or after_hashes(text) or text


def answer_of_solution(text: str) -> str | None:
    """Return the final answer of a solution: its last box, the text after ``####``, or a short text itself."""
    return last_boxed(text) or after_hashes(text) or short_answer(text)


def short_answer(text: str) -> str | None:
    """Return ``text`` if it is only an answer, such as ``4``; None if it may be a worked solution or a program."""
    text = text.strip()
    if not text or "\n" in text or len(text) > MAX_STATED_CHARS or CODE.search(text):
        return None
    return text if len(WORD.findall(text)) <= MAX_STATED_WORDS else None
