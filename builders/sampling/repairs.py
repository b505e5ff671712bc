"""Records small defects in replies that do not change an answer, such as a negative token count.

The code that repairs a defect calls ``note``; ``builders.sampling.reply`` collects the notes of one reply.
"""

from __future__ import annotations

from contextvars import ContextVar, Token

_notes: ContextVar[set[str] | None] = ContextVar("notes", default=None)


def note(defect: str) -> None:
    """Record a repaired ``defect`` of the reply that is being parsed. Without ``CollectedNotes``, do nothing."""
    notes = _notes.get()
    if notes is not None:
        notes.add(defect)


class CollectedNotes:
    """A context manager. It returns a set, to which ``note`` adds the repaired defects during the block."""

    __slots__ = ("_token",)

    def __enter__(self) -> set[str]:
        notes: set[str] = set()
        self._token: Token[set[str] | None] = _notes.set(notes)
        return notes

    def __exit__(self, *raised: object) -> None:
        _notes.reset(self._token)
