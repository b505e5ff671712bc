"""What two prompts are compared by: their words, and their text without what does not matter."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Sequence

from bestofn.builders.records import Query, content_text

_SCRIPT = "\u3040-\u30ff\u3400-\u9fff"  # written without blanks: each character is a word
_WORD = re.compile(rf"[{_SCRIPT}]|(?:(?<![\w.,])\.)?\d+(?:[.,]\d+)*|[^\W_{_SCRIPT}]+")
_TOKEN = re.compile(rf"{_WORD.pattern}|[^\s\w.,;:?'\"`’“”$\\]")


def question(query: Query) -> str:
    """What the user says, all turns."""
    return "\n".join(content_text(m.get("content")) for m in query.messages if m.get("role") == "user").strip()


def words(text: str) -> list[str]:
    """Words and numbers, in lower case."""
    return _WORD.findall(_plain(text))


def tokens(text: str) -> list[str]:
    """Words, numbers and the signs that may change a sum; case, blanks, quotes and full stops are left out."""
    return _TOKEN.findall(_plain(text))


def frame(query: Query) -> str:
    """A digest of what must be equal beside the words for two prompts to be one: numbers, tools, what others said."""
    others = [(m.get("role"), content_text(m.get("content"))) for m in query.messages if m.get("role") != "user"]
    numbers = [token for token in words(question(query)) if any(map(str.isdigit, token))]
    return digest(json.dumps([numbers, list(query.tools), others], sort_keys=True, default=str))


def digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()


def runs(sequence: Sequence[str], length: int) -> set[str]:
    """All runs of ``length`` words, each as one text; none of a shorter sequence."""
    return {" ".join(sequence[start : start + length]) for start in range(len(sequence) - length + 1)}


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
