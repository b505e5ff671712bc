"""The known word that a wrong word was most likely meant to be, for error messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def nearest(word: str, known: Iterable[str], cutoff: float = 0.55) -> str | None:
    """The word of ``known`` that is most like ``word``; None when none is at least ``cutoff`` alike (0 to 1)."""
    found = difflib.get_close_matches(str(word), [str(one) for one in known], n=1, cutoff=cutoff)
    return found[0] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` for the nearest known word, else ``"."``: the end of a sentence about ``word``."""
    match = nearest(word, known)
    return f"; did you mean {match!r}?" if match else "."


def unknown_key(where: str, key: str, known: Sequence[str], owner: str) -> str:
    """The message for a key that nothing takes, with the nearest that is taken."""
    taken = ", ".join(sorted(known)) or "no settings"
    return f"{where}: unknown key {key!r}{did_you_mean(key, known)} {owner} takes {taken}."
