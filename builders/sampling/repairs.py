"""Records small defects in replies that do not change an answer, such as a negative token count.

The code that repairs a defect calls ``note``; ``builders.sampling.reply`` collects the notes of one reply.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_notes: ContextVar[set[str] | None] = ContextVar("notes", default=None)


def note(defect: str) -> None:
    """Record a repaired ``defect`` of the reply that is being parsed. Outside a ``collected`` block, do nothing."""
    notes = _notes.get()
    if notes is not None:
        notes.add(defect)


@contextmanager
def collected() -> Iterator[set[str]]:
    """Yield a set. During the block, ``note`` adds the repaired defects to this set."""
    notes: set[str] = set()
    token = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(token)
