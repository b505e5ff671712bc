"""Finds prompts that overlap with held-out prompts: the same text, the same words, or a common sequence of words.

``screened`` uses it, because a run must not train on such prompts.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import xxhash

from bestofn.builders.records import Query, content_text

# Normalises the text of prompts for comparison.

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


@dataclass(frozen=True, slots=True)
class Overlap:
    """The reason why a prompt is dropped, and the id of the other prompt with which it overlaps."""

    reason: str
    other: str


class HeldOut:
    """An index of the held-out prompts. It needs about 12 bytes per word.

    A prompt overlaps with a held-out prompt if the texts are equal, or if their words are equal (ignoring case, blanks
    and punctuation). It also overlaps if the two prompts share ``run`` consecutive words. The default is 13 words
    (Brown et al. 2020, arXiv:2005.14165, appendix C). As in that paper, a sequence in more than ``common`` held-out
    prompts is a common phrase ("write a function that …") and is ignored.
    """

    def __init__(self, sets: Iterable[tuple[str, Iterable[Query]]], *, run: int = 13, common: int = 10) -> None:
        self.run = run
        self.empty: list[str] = []  # names of the sets that contain no prompt
        self._names: list[str] = []
        self._same_text: dict[str, int] = {}
        self._same_words: dict[str, int] = {}
        hashes, owners = array("Q"), array("l")
        for name, queries in sets:
            before = len(self._names)
            for query in queries:
                self._add(f"{name} {query.id}", user_text(query), hashes, owners)
            if len(self._names) == before:
                self.empty.append(name)
        self._hashes, self._owners = _without_common(np.array(hashes, "u8"), np.array(owners, "i8"), common)

    def _add(self, name: str, text: str, hashes: array[int], owners: array[int]) -> None:
        owner = len(self._names)
        self._names.append(name)
        self._same_text.setdefault(digest(text), owner)
        if self._same_words.setdefault(digest(_normalized(text)), owner) != owner:
            return  # a copy of an earlier prompt; its word sequences are counted once
        found = _ngram_hashes(words(text), self.run)
        hashes.extend(found)
        owners.extend([owner] * len(found))

    def overlap(self, query: Query) -> Overlap | None:
        """Return the overlap of ``query`` with a held-out prompt; None if there is none."""
        text = user_text(query)
        for kind, index, key in (("text", self._same_text, text), ("words", self._same_words, _normalized(text))):
            owner = index.get(digest(key))
            if owner is not None:
                return Overlap(f"held out: same {kind}", self._names[owner])
        found = np.array(_ngram_hashes(words(text), self.run), "u8")
        if not len(found) or not len(self._hashes):
            return None
        places = np.searchsorted(self._hashes, found)
        hits = places[self._hashes[np.minimum(places, len(self._hashes) - 1)] == found]
        hits = hits[hits < len(self._hashes)]
        if not len(hits):
            return None
        return Overlap(f"held out: {self.run} words in common", self._names[int(self._owners[hits.min()])])


def _normalized(text: str) -> str:
    return " ".join(tokens(text))


def _ngram_hashes(sequence: Sequence[str], length: int) -> list[int]:
    return sorted(xxhash.xxh3_64_intdigest(one.encode()) for one in word_ngrams(sequence, length))


def _without_common(hashes: np.ndarray, owners: np.ndarray, common: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (sorted distinct hashes, first owner of each). Hashes with more than ``common`` owners are dropped."""
    distinct, first, counts = np.unique(hashes, return_index=True, return_counts=True)
    rare = counts <= common
    return distinct[rare], owners[first[rare]]
