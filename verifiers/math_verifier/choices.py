"""Multiple-choice problems: finds option letters in answers, and option texts in problems."""

from __future__ import annotations

import re
from functools import lru_cache

_LETTER = re.compile(
    r"^\s*(?:\\(?:text|mathrm|mathbf|textbf|textrm|mbox|boxed)\s*\{\s*)*[\[(]?\s*([A-Ja-j])\s*[\])]?\s*\}*\s*[.):]?\s*$"
)
_LEADING = re.compile(
    r"^\s*(?:\\(?:text|mathrm|mathbf|textbf|textrm|mbox|boxed)\s*\{\s*)*(?:option|choice|answer"
    r"|alternative)?\s*(?:is\s+)?"
    r"(?:\(\s*([A-Ja-j])\s*\)|([A-Ja-j])\s*[).:](?!\d)|(?-i:([A-J]))(?=\s*(?:$|\\|\}|[-–]\s|,|\s(?:because|since)\b)))",
    re.IGNORECASE,
)
_TRAILING = re.compile(
    r"\b(?i:(?:option|choice|answer|alternative)(?: is)?)\s*:?\s*\(?\s*([A-J])\s*\)?(?=[\s.,;:})]|$)"
)
_BRACKETED = re.compile(r"\(\s*([A-J])\s*\)")
_SEVERAL = re.compile(r"^\s*\(?[A-J]\)?\s*(?:,|and|or|&)\s*\(?[A-J]\)?\s*(?:,|and|or|&|$|\.)")
_LIST = re.compile(r"\(?[A-J]\)?(?:\s*(?:,|;|&|\band\b|,\s*and\b)\s*\(?[A-J]\)?)+\.?")
_RUN = re.compile(r"[A-J]{2,5}")
_OPTION = re.compile(r"(?:\\text(?:bf)?\s*\{\s*)?\(\s*([A-Ha-h])\s*\)\s*\}?\s*(?:\\ |~)?")


def letter(text: str) -> str | None:
    """Return the letter, in upper case, if ``text`` is only a letter (``C``, ``(c)``, ``\\text{(C)}``), else None."""
    match = _LETTER.match(text)
    return match[1].upper() if match else None


def is_reference(text: str) -> bool:
    """Return whether a reference is an option letter in brackets, such as ``(C)``. ``C`` alone may be a variable."""
    return letter(text) is not None and "(" in text


def is_marked(text: str) -> bool:
    """Return whether an answer states the letter of an option: ``c``, ``(B) 12 cm``, ``Option B``."""
    leading = _LEADING.match(text)
    return letter(text) is not None or bool(leading and (leading[1] or leading[2])) or bool(_TRAILING.search(text))


def chosen(text: str) -> str | None:
    """Return the letter of the chosen option. Return None if the answer contains no letter, or several letters."""
    whole = letter(text)
    if whole:
        return whole
    if _SEVERAL.match(text):
        return None
    match = _LEADING.match(text)
    if match:
        return next(group for group in match.groups() if group).upper()
    for pattern in (_TRAILING, _BRACKETED):
        letters = {character.upper() for character in pattern.findall(text)}
        if len(letters) == 1:
            return letters.pop()
    return None


def several(text: str) -> frozenset[str]:
    """Return the letters if ``text`` is a list such as ``A, C``, ``(A) and (C)`` or ``AC``; otherwise an empty set."""
    letters = re.findall(r"[A-J]", text)
    listed = _LIST.fullmatch(text.strip().strip("$")) or (_RUN.fullmatch(text) and letters == sorted(set(letters)))
    return frozenset(letters) if listed else frozenset()


@lru_cache(maxsize=1024)
def options(problem: str) -> tuple[str, ...]:
    """Return the texts of the options that the problem lists as (A) … (B) …, in order; () if there are none."""
    marks = list(_OPTION.finditer(problem))
    wanted, labels = "A", []
    for match in marks:
        if match[1].upper() == wanted:
            labels.append(match)
            wanted = chr(ord(wanted) + 1)
    if len(labels) < 2:
        return ()
    ends = [match.start() for match in labels[1:]] + [len(problem)]
    return tuple(problem[match.end() : end].strip(" \n\t,;.\\$&") for match, end in zip(labels, ends, strict=True))
