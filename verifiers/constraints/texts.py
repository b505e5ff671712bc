"""Divides a text into words, tokens, sentences and paragraphs, as constraints count them."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from bestofn.verifiers.constraints.catalogue import UndecidedError

# Word lists that constraints refer to, from ``word_lists.txt``.

FILE = Path(__file__).with_name("word_lists.txt")


def word_list(name: str) -> list[str]:
    """Return the words of the list ``name``, in the order of the file."""
    return _lists()[name]


@cache
def _lists() -> Mapping[str, list[str]]:
    text = re.sub(r"(?m)^#.*$", "", FILE.read_text(encoding="utf-8"))
    _, *parts = re.split(r"\[(\w+)\]", text)
    return {name: body.split() for name, body in zip(parts[::2], parts[1::2], strict=True)}


STOP_WORDS = frozenset(word_list("stop_words"))
CONJUNCTIONS = frozenset({"and", "but", "for", "nor", "or", "so", "yet"})
PRONOUNS = frozenset(word_list("pronouns"))
PERSON_NAMES = tuple(word_list("person_names"))
CAPITALS = word_list("capitals")
VERBS, NO_VERBS = frozenset(word_list("verbs")), frozenset(word_list("no_verbs"))
BEFORE_NOUN = frozenset(word_list("before_noun"))
ABBREVIATIONS = frozenset(word_list("abbreviations"))
CLOSED_CLASS = frozenset(word_list("closed_class"))


MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0711\u0730-\u074a"
    "\u0900-\u0963\u0966-\u0dff\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0f71-\u0f84\u102b-\u103e\u17b4-\u17d3\u1ab0-\u1aff\u1dc0-\u1dff\u200c\u200d"
    "\u20d0-\u20ff\ufe20-\ufe2f"
)
"""Marks within a word that are no letters: accents after a letter, and the vowel signs of Hebrew, Arabic and Hindi."""
WORD = re.compile(rf"\w[\w{MARKS}]*")
WIDE = "。！？．؟۔।॥։።"
END = re.compile(rf"(?<![.?!…])[.?!…]++(?=[)\"'\]}}*:;@({{\[”“’»⁰¹²³⁴-⁹]|_+(?:\s|\Z)|\s)|[{WIDE}]++")
WIDE_CLOSING = re.compile(r"[」』）】\"')\]}”’»]+")
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
"""A letter of a script without spaces between words: Thai, Lao, Burmese, Khmer, kana, Chinese characters."""
MOST_UNSPACED = 0.2  # the share of such letters up to which the words of a text are counted
CLOSING = re.compile(r"[\"')\]}*_”“’»⁰¹²³⁴-⁹]+(?=\s|$)")
TITLES = frozenset({"mr", "mrs", "ms", "dr", "prof", "messrs", "mme", "mlle"})
NUMBERED = frozenset({"no", "nos", "nr", "vol", "fig", "eq", "ch", "p", "pp", "art"})
"""Abbreviations before a number."""
SPACED_ABBREVIATION = re.compile(r"(?<!\w)\w\. \w\.\Z")  # z. B.
SINGLE_LETTER = re.compile(r"[^\W\d_]\.")
LAST_TOKEN = re.compile(r"\S*\Z")
QUOTED = re.compile(r"[\"”’»]\s")
NEXT_TOKEN = re.compile(r"[\s\"'()\[\]{}*“”‘’«»_]*(\S*)")
NO_PARAGRAPH = re.compile(r"#{1,6}\s.*|(?:[-*_]\s*){3,}")
CONTRACTION = re.compile(r"(?i)(?<=\w)(n't|'(?:s|re|ve|ll|d|m))\b")
TOKEN = re.compile(r"\w+(?:[-'’./@&]\w+)*|'(?:s|re|ve|ll|d|m)\b|\.{2,}|[^\w\s]")


def words(text: str) -> list[str]:
    """Return the words of ``text``: runs of letters, digits, underscores and marks, but not of underscores alone."""
    return [word for word in WORD.findall(text) if word.strip("_")]


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


def whole(word: str) -> str:
    """Return a pattern that matches ``word`` as a whole word, also in Markdown italics (``_word_``)."""
    return rf"(?<!\w)_*{re.escape(word)}_*(?!\w)"


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
        if closing and is_wide(end) and WORD.match(text, closing.end()):
            continue  # a quoted sentence within a sentence
        stop = closing.end() if closing else end.end()
        if text[start:stop].strip():
            yield text[start:stop].strip()
        start = stop
    if text[start:].strip():
        yield text[start:].strip()


def is_wide(end: re.Match[str]) -> bool:
    """Return whether ``end`` is a final mark that needs no space after it: Chinese, Japanese, Hindi, Arabic or Urdu."""
    return end.group()[0] in WIDE


def _ends_sentence(text: str, end: re.Match[str]) -> bool:
    marks = end.group()
    following = NEXT_TOKEN.match(text, end.end())
    token = following.group(1) if following else ""
    if is_wide(end) or "?" in marks or "!" in marks:
        return not (QUOTED.match(text, end.end()) and token[:1].islower())  # "Stop!" he said.
    if not token and not text[end.end() :].strip():
        return True
    if token.startswith("."):
        return False  # dots with spaces between them
    before = LAST_TOKEN.search(text, max(0, end.start() - 40), end.start())
    word = (before.group() if before else "").lstrip("\"'([{*“‘_")
    starts = token[:1].isupper() and WORD.match(token) is not None
    common = starts and (re.split(r"\W", token)[0].lower() in CLOSED_CLASS)
    if word.lower() in TITLES or (word.lower() in NUMBERED and token[:1].isdigit()):
        return False
    if len(marks) > 1 or marks == "…" or word.lower() in ABBREVIATIONS:
        return common
    if SPACED_ABBREVIATION.search(text, max(0, end.start() - 4), end.end()) and not starts:
        return False
    if len(word) == 1 and word.isalpha():
        return common or not (starts or SINGLE_LETTER.fullmatch(token))
    if not word:
        return starts
    if word.isdigit():
        return not token[:1].islower()
    return True


def paragraphs(text: str) -> list[str]:
    """Return the parts of ``text`` between blank lines, without Markdown headings and horizontal rules."""
    parts = re.split(r"\n\s*\n", text.replace("\r\n", "\n"))
    return [part.strip() for part in parts if part.strip() and not NO_PARAGRAPH.fullmatch(part.strip())]


def syllables(word: str) -> int:
    """Estimate the number of syllables of an English word: the number of its groups of vowels, without a silent e."""
    word = word.lower()
    count = len(re.findall(r"[aeiouy]+", word))
    silent = re.search(r"[^aeiouyl]e$|[^aeiouydt]ed$|[^aeiouyscxzgh]es$", word)
    count += len(re.findall(r"[^q]ia|[^aeiou]io(?!u|n)|eo(?!u)|[aeiou]ing", word))
    return max(1, count - bool(silent)) if word.isalpha() else count
