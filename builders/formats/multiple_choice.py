"""The parts of a multiple-choice question: options in a prompt, letters, and the options in a gold answer.

An option is represented by its index from 0. Its letter is ``LETTERS[index]``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_ASCII_FORMS = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}  # full-width ("Ａ", "（") -> ASCII
_WRAPPER = re.compile(r"\\(?:boxed|fbox|text(?:bf|rm|it|sf)?|math(?:rm|bf|sf)|mbox|operatorname|bf|rm)\s*\{([^{}]*)\}")
_LABEL = re.compile(r"\s*(?:\(\s*([A-Z])\s*\)|([A-Z])\s*[.):、])\s*")
_LISTED = re.compile(r"\(\s*([A-Z])\s*\)|(?<![A-Za-z(\\{^_])([A-Z])\s*[.):、]")
_ITEM = r"[(\[]?[A-Za-z][)\]]?[.):]?"
_AND = r"(?:\s*(?:,|;|、|/|&|\+|\band\b|和|与|及)\s*(?:and\s+)?|\s+|(?<=[)\]])(?=[(\[]))"
_SEPARATED = re.compile(rf"{_ITEM}(?:{_AND}{_ITEM})*\.?")
_TOGETHER = re.compile(r"[A-Z]{2,}")
_INTRODUCTION = re.compile(
    r"(?:the\s+)?(?:correct\s+)?(?:answer|option|choice)s?(?:\s+(?:is|are)\b)?\s*:?\s*(?=\W?[A-Za-z])", re.IGNORECASE
)
_LABELLED_GOLD = re.compile(r"\s*[(\[]?([A-Z])(?:[)\]][.:]?|[.:、])\s*(\S.*)", re.DOTALL)
_EDGES = " \t\n\r.,;:!。，；：、\"'“”‘’"


def to_ascii_forms(text: str) -> str:
    """Return ``text`` with full-width letters, digits and punctuation replaced by ASCII. Its length does not change."""
    return text if text.isascii() else text.translate(_ASCII_FORMS)


def without_latex_wrappers(text: str) -> str:
    r"""Return ``text`` without dollar signs, and with ``\text{B}`` and similar commands replaced by their content."""
    text = re.sub(r"\\[()\[\]]|\$|\\(?:left|right)(?![A-Za-z])", "", text)
    for _ in range(3):
        text, count = _WRAPPER.subn(r"\1", text)
        if not count:
            break
    return text


@lru_cache(maxsize=4096)
def plain(text: str) -> str:
    """Return ``text`` in the form in which options are compared: lower case, without markup and final punctuation."""
    text = without_latex_wrappers(to_ascii_forms(text)).replace("*", "").replace("`", "")
    return re.sub(r"\s+", " ", text).strip(_EDGES).lower()


def without_labels(options: Sequence[str]) -> tuple[str, ...]:
    """Return ``options`` without their letters, if each option starts with its own letter (``A) 21``, ``B) 24``)."""
    matches = [_LABEL.match(option) for option in options]
    letters = "".join((match[1] or match[2]) if match else " " for match in matches)
    if len(options) < 2 or letters != LETTERS[: len(options)]:
        return tuple(options)
    return tuple(option[match.end() :] if match else option for option, match in zip(options, matches, strict=True))


def listed_options(text: str) -> tuple[str, ...]:
    """Return the texts of the options that ``text`` lists as ``A. …``, ``(A) …`` or ``A) …``; () if there are none.

    If there are several lists, the last one counts, because a prompt may start with examples.
    """
    text = to_ascii_forms(text)
    marks: list[re.Match[str]] = []
    for match in _LISTED.finditer(text):
        letter = match[1] or match[2]
        if letter == "A":
            marks = [match]
        elif marks and letter == LETTERS[len(marks) % len(LETTERS)]:
            marks.append(match)
    if len(marks) < 2:
        return ()
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    return tuple(text[mark.end() : end].strip(" \n\t,;.\\$&") for mark, end in zip(marks, ends, strict=True))


def with_options(question: str, options: Sequence[str]) -> str:
    """Return ``question`` followed by one line per option: ``A. …``.

    A question that already lists its options is returned unchanged.
    """
    if len(listed_options(question)) >= len(options):
        return question
    lines = [f"{letter}. {option}" for letter, option in zip(LETTERS, options, strict=False)]
    return "\n".join([question.rstrip(), "", *lines])


def letters_of(options: frozenset[int] | Sequence[int]) -> str:
    """Return the letters of ``options``, sorted and separated by commas: ``A, C``."""
    return ", ".join(LETTERS[index] for index in sorted(options))


def gold_options(answer: str, options: Sequence[str]) -> frozenset[int] | None:
    """Return the options that the gold answer names; None if it names none or has two meanings.

    The answer is a letter (``C``, ``(c)``), several letters (``AC``, ``A, C``), a letter with its text (``C. Paris``),
    the text of an option, or the index of an option from 0. An answer such as ``2`` may be the index of one option and
    the text of another; then the result is None. If the options are unknown and ``options`` is empty, the answer can
    only be letters.
    """
    answer = without_latex_wrappers(to_ascii_forms(answer)).strip()
    candidates = (_by_letters(answer, options), _by_text(answer, options), _by_index(answer, options))
    readings = {reading for reading in candidates if reading is not None}
    if not readings:
        return _by_labelled_text(answer, options)
    return readings.pop() if len(readings) == 1 else None


def _by_index(answer: str, options: Sequence[str]) -> frozenset[int] | None:
    is_index = re.fullmatch(r"\d{1,2}", answer, re.ASCII) and int(answer) < len(options)
    return frozenset({int(answer)}) if is_index else None


def _by_text(answer: str, options: Sequence[str]) -> frozenset[int] | None:
    same = [index for index, option in enumerate(options) if plain(option) == plain(answer)]
    return frozenset(same) if len(same) == 1 else None


def _by_letters(answer: str, options: Sequence[str]) -> frozenset[int] | None:
    found = letter_list(answer)
    count = len(options) or len(LETTERS)
    return frozenset(found) if found and max(found) < count else None


def letter_list(text: str) -> list[int]:
    """Return the options whose letters ``text`` lists: ``AC``, ``A, C``, ``(a) and (c)``, ``["A", "C"]``.

    Returns [] if ``text`` contains anything else.
    """
    if text.startswith("[") and text.endswith("]"):
        try:
            items = json.loads(text.replace("'", '"'))
        except ValueError:
            items = []
        if items and all(isinstance(item, str) for item in items):
            text = ", ".join(items)
    text = _INTRODUCTION.sub("", text.strip(), count=1)
    if not (_TOGETHER.fullmatch(text) or _SEPARATED.fullmatch(text)):
        return []
    letters = re.findall(r"[A-Za-z]", re.sub(r"\band\b", " ", text))
    indices = [LETTERS.index(letter.upper()) for letter in letters]
    in_order = indices == sorted(set(indices))
    is_word = not in_order and (_TOGETHER.fullmatch(text) or len(set(indices)) < len(indices))  # "BAD", "DAD"
    return [] if is_word else indices


def _by_labelled_text(answer: str, options: Sequence[str]) -> frozenset[int] | None:
    """Return the option that ``C. Paris`` names; None if the text of option C is not Paris."""
    match = _LABELLED_GOLD.fullmatch(answer)
    if not match:
        return None
    index = LETTERS.index(match[1])
    return frozenset({index}) if index < len(options) and plain(options[index]) == plain(match[2]) else None
