"""Normalises the text of prompts for comparison. ``held_out`` and ``near_duplicates`` use it."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Sequence

from bestofn.builders.records import Query, content_text

_SCRIPT = "\u3040-\u30ff\u3400-\u9fff"  # scripts that do not separate words by blanks: each character counts as a word
_WORD = re.compile(rf"[{_SCRIPT}]|(?:(?<![\w.,])\.)?\d+(?:[.,]\d+)*|[^\W_{_SCRIPT}]+")
_TOKEN = re.compile(rf"{_WORD.pattern}|[^\s\w.,;:?'\"`’“”$\\]")


def user_text(query: Query) -> str:
    """Return the text of all user turns, one after another."""
    return "\n".join(content_text(m.get("content")) for m in query.messages if m.get("role") == "user").strip()


def words(text: str) -> list[str]:
    """Return the words and numbers of ``text``, in lower case."""
    return _WORD.findall(_folded(text))


def tokens(text: str) -> list[str]:
    """Return the words, numbers and signs of ``text``, in lower case. Quotes and ordinary punctuation are dropped."""
    return _TOKEN.findall(_folded(text))


def context_digest(query: Query) -> str:
    """Return a digest of the numbers in the prompt, the tools, and the messages that are not from the user.

    Similar prompts count as near duplicates only if their digests are equal.
    """
    others = [(m.get("role"), content_text(m.get("content"))) for m in query.messages if m.get("role") != "user"]
    numbers = [token for token in words(user_text(query)) if any(map(str.isdigit, token))]
    return digest(json.dumps([numbers, list(query.tools), others], sort_keys=True, default=str))


def digest(text: str) -> str:
    """Return a hash of ``text``: 128 bits in hexadecimal."""
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()


def word_ngrams(sequence: Sequence[str], length: int) -> set[str]:
    """Return all sequences of ``length`` consecutive words, each joined to one text; empty if there are fewer words."""
    return {" ".join(sequence[start : start + length]) for start in range(len(sequence) - length + 1)}


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
