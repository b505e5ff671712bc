"""Divides a text into words, tokens, sentences and paragraphs, as constraints count them."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

from bestofn.verifiers.constraints.catalogue import UndecidedError
from bestofn.verifiers.constraints.word_lists import ABBREVIATIONS, CLOSED_CLASS

WORD = re.compile(r"\w+")
END = re.compile(r"(?<![.?!])[.?!]++(?=[)\"'\]}*:;@({\[”’»]|\s)|[。！？؟۔।॥]++")
WIDE_CLOSING = re.compile(r"[」』）】\"')\]}”’»]+")
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
"""A letter of a script without spaces between words: Thai, Lao, Burmese, Khmer, kana, Chinese characters."""
MOST_UNSPACED = 0.2  # the share of such letters up to which the words of a text are counted
CLOSING = re.compile(r"[\"')\]}”’»]+(?=\s|$)")
LAST_TOKEN = re.compile(r"\S*\Z")
NEXT_TOKEN = re.compile(r"[\s\"'()\[\]{}*“”‘’«»_]*(\S*)")
CONTRACTION = re.compile(r"(?i)(?<=\w)(n't|'(?:s|re|ve|ll|d|m))\b")
TOKEN = re.compile(r"\w+(?:[-'’./@&]\w+)*|'(?:s|re|ve|ll|d|m)\b|\.{2,}|[^\w\s]")


def words(text: str) -> list[str]:
    """Return the words of ``text``: runs of letters, digits and underscores."""
    return WORD.findall(text)


def counted_words(text: str) -> list[str]:
    """Return ``words(text)``. Raises ``UndecidedError`` if the text has no spaces between words, as in Japanese."""
    found = words(text)
    letters = sum(map(len, found))
    if len(UNSPACED.findall(text)) > MOST_UNSPACED * letters:
        raise UndecidedError("words cannot be counted in a script without spaces between words")
    return found


def bare_words(text: str) -> list[str]:
    """Return the words of ``text`` without punctuation; "don't" is one word."""
    return text.translate(str.maketrans("", "", string.punctuation)).split()


def stripped_words(text: str) -> list[str]:
    """Return the parts of ``text`` between spaces, without punctuation at their ends."""
    parts = (part.strip(string.punctuation) for part in text.split())
    return [part for part in parts if part]


def tokens(text: str) -> list[str]:
    """Return words and punctuation marks. "I'm" is two tokens: "I" and "'m"."""
    return TOKEN.findall(CONTRACTION.sub(r" \1", text).replace(" n't", " not"))


def lines(text: str) -> list[str]:
    """Return the lines of ``text`` that are not empty."""
    return [line for line in text.split("\n") if line.strip()]


def sentences(text: str) -> list[str]:
    """Return the sentences of ``text``. A line break alone ends no sentence."""
    return list(_sentences(text))


def _sentences(text: str) -> Iterator[str]:
    start = 0
    for end in END.finditer(text):
        if end.start() < start or not _ends_sentence(text, end):
            continue
        closing = (WIDE_CLOSING if is_wide(end) else CLOSING).match(text, end.end())
        stop = closing.end() if closing else end.end()
        if text[start:stop].strip():
            yield text[start:stop].strip()
        start = stop
    if text[start:].strip():
        yield text[start:].strip()


def is_wide(end: re.Match[str]) -> bool:
    """Return whether a sentence ends with a mark of Chinese, Japanese, Hindi, Arabic or Urdu, also without a space."""
    return not end.group().isascii()


def _ends_sentence(text: str, end: re.Match[str]) -> bool:
    marks = end.group()
    if is_wide(end) or "?" in marks or "!" in marks:
        return True
    following = NEXT_TOKEN.match(text, end.end())
    token = following.group(1) if following else ""
    if not token and not text[end.end() :].strip():
        return True
    before = LAST_TOKEN.search(text, max(0, end.start() - 40), end.start())
    word = (before.group() if before else "").lstrip("\"'([{*“‘_")
    starts = token[:1].isupper() and WORD.match(token) is not None
    common = starts and (re.split(r"\W", token)[0].lower() in CLOSED_CLASS)
    if len(marks) > 1 or word.lower() in ABBREVIATIONS:
        return common
    if len(word) == 1 and word.isalpha():
        return common or not starts
    if word.isdigit():
        return not token[:1].islower()
    return True


def paragraphs(text: str) -> list[str]:
    """Return the parts of ``text`` between blank lines."""
    return [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]


def syllables(word: str) -> int:
    """Return about how many syllables an English word has: its groups of vowels, without a silent e."""
    word = word.lower()
    count = len(re.findall(r"[aeiouy]+", word))
    silent = re.search(r"[^aeiouyl]e$|[^aeiouydt]ed$|[^aeiouyscxzgh]es$", word)
    count += len(re.findall(r"[^q]ia|[^aeiou]io(?!u|n)|eo(?!u)|[aeiou]ing", word))
    return max(1, count - bool(silent)) if word.isalpha() else count
