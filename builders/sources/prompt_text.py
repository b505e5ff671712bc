"""The text of prompts in the forms that are compared. Used by ``held_out`` and ``near_duplicates``."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Sequence

from bestofn.builders.records import Query, content_text

_SCRIPT = "\u3040-\u30ff\u3400-\u9fff"  # written without blanks: each character counts as a word
_WORD = re.compile(rf"[{_SCRIPT}]|(?:(?<![\w.,])\.)?\d+(?:[.,]\d+)*|[^\W_{_SCRIPT}]+")
_TOKEN = re.compile(rf"{_WORD.pattern}|[^\s\w.,;:?'\"`’“”$\\]")


def user_text(query: Query) -> str:
    """The text of all user turns."""
    return "\n".join(content_text(m.get("content")) for m in query.messages if m.get("role") == "user").strip()


def words(text: str) -> list[str]:
    """Words and numbers, in lower case."""
    return _WORD.findall(_folded(text))


def tokens(text: str) -> list[str]:
    """Words, numbers, and the signs that may change a calculation; without case, blanks, quotes and full stops."""
    return _TOKEN.findall(_folded(text))


def context_digest(query: Query) -> str:
    """A digest of numbers, tools and the other roles' messages: they must be equal for two prompts to be the same."""
    others = [(m.get("role"), content_text(m.get("content"))) for m in query.messages if m.get("role") != "user"]
    numbers = [token for token in words(user_text(query)) if any(map(str.isdigit, token))]
    return digest(json.dumps([numbers, list(query.tools), others], sort_keys=True, default=str))


def digest(text: str) -> str:
    """A hash of ``text``, 128 bits in hexadecimal."""
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()


def word_ngrams(sequence: Sequence[str], length: int) -> set[str]:
    """All sequences of ``length`` consecutive words, each as one text; empty for a shorter sequence."""
    return {" ".join(sequence[start : start + length]) for start in range(len(sequence) - length + 1)}


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
