"""The known word that is closest to a wrong one, for the error messages of all rooms."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def nearest(word: str, known: Iterable[str], cutoff: float = 0.55) -> str | None:
    """The word of ``known`` that is most similar to ``word``; None below the similarity ``cutoff`` (0 to 1)."""
    found = difflib.get_close_matches(str(word), [str(one) for one in known], n=1, cutoff=cutoff)
    return found[0] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` for the nearest known word, else ``"."``: the end of a sentence about ``word``."""
    match = nearest(word, known)
    return f"; did you mean {match!r}?" if match else "."


def unknown_key(where: str, key: str, known: Sequence[str], owner: str) -> str:
    """The message about a key that ``owner`` does not accept, with the closest accepted key."""
    taken = ", ".join(sorted(known)) or "no settings"
    return f"{where}: unknown key {key!r}{did_you_mean(key, known)} {owner} accepts {taken}."
