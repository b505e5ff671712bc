"""Prompts that a run must not train on: the same text, the same words, or a run of words in common."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import xxhash

from bestofn.builders.records import Query
from bestofn.builders.sources.prompt_text import digest, question, runs, tokens, words


@dataclass(frozen=True, slots=True)
class Likeness:
    """Why a prompt was dropped, and the prompt it is like."""

    reason: str
    like: str


class HeldOut:
    """An index of the held-out prompts, about 12 bytes for each of their words.

    A prompt overlaps when its text is equal, when it is equal but for case, blanks and punctuation, or when ``run``
    words in a row stand in both (13: Brown et al. 2020, arXiv:2005.14165, appendix C). As there, a run that stands in
    more than ``common`` held-out prompts is a turn of phrase ("write a function that …") and shows nothing.
    """

    def __init__(self, sets: Iterable[tuple[str, Iterable[Query]]], *, run: int = 13, common: int = 10) -> None:
        self.run = run
        self.empty: list[str] = []  # the sets that gave no prompt
        self._names: list[str] = []
        self._exact: dict[str, int] = {}
        self._same: dict[str, int] = {}
        hashes, owners = array("Q"), array("l")
        for name, queries in sets:
            before = len(self._names)
            for query in queries:
                text = question(query)
                owner = len(self._names)
                self._exact.setdefault(digest(text), owner)
                self._names.append(f"{name} {query.id}")
                if self._same.setdefault(digest(_same(text)), owner) != owner:
                    continue  # its runs are those of the first of its kind: a copy makes them no turn of phrase
                found = _hashes(words(text), run)
                hashes.extend(found)
                owners.extend([owner] * len(found))
            if len(self._names) == before:
                self.empty.append(name)
        self._runs, self._owners = _without_common(np.array(hashes, "u8"), np.array(owners, "i8"), common)

    def likeness(self, query: Query) -> Likeness | None:
        """What ``query`` has in common with a held-out prompt; None when nothing."""
        text = question(query)
        for kind, index, key in (("text", self._exact, text), ("words", self._same, _same(text))):
            owner = index.get(digest(key))
            if owner is not None:
                return Likeness(f"held out: same {kind}", self._names[owner])
        found = np.array(_hashes(words(text), self.run), "u8")
        if not len(found) or not len(self._runs):
            return None
        places = np.searchsorted(self._runs, found)
        hits = places[self._runs[np.minimum(places, len(self._runs) - 1)] == found]
        hits = hits[hits < len(self._runs)]
        if not len(hits):
            return None
        return Likeness(f"held out: {self.run} words in common", self._names[int(self._owners[hits.min()])])


def _same(text: str) -> str:
    return " ".join(tokens(text))


def _hashes(sequence: Sequence[str], length: int) -> list[int]:
    return sorted(xxhash.xxh3_64_intdigest(one.encode()) for one in runs(sequence, length))


def _without_common(hashes: np.ndarray, owners: np.ndarray, common: int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct hashes in order, each with its first owner, without those of more than ``common`` owners."""
    distinct, first, counts = np.unique(hashes, return_index=True, return_counts=True)
    rare = counts <= common
    return distinct[rare], owners[first[rare]]
