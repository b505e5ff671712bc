"""Records pieces of work as spans. Without a recorder, a span costs almost no time.

``sampling``, ``stages`` and the sandbox call ``span``; ``telemetry.otel`` implements the recorder.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

Value = str | int | float | bool
Attributes = Mapping[str, Value | None]
"""Facts about a span. An attribute whose value is None is left out."""


class Span(Protocol):
    """A span: a recorded piece of work that is in progress."""

    def note(self, attributes: Attributes) -> None:
        """Add attributes to the span, for example the outcome."""
        ...


class Recorder(Protocol):
    """An object that receives the spans of a run."""

    def span(self, name: str, attributes: Attributes) -> AbstractContextManager[Span]:
        """Record the block as a span with the name ``name``."""
        ...


class _Unrecorded:
    def note(self, attributes: Attributes) -> None: ...


_UNRECORDED = _Unrecorded()
_recorder: Recorder | None = None


def span(name: str, attributes: Attributes) -> AbstractContextManager[Span]:
    """Record the block as a span with the name ``name``. If it raises, ``error.type`` is the exception's type."""
    return contextlib.nullcontext(_UNRECORDED) if _recorder is None else _recorder.span(name, attributes)


@contextlib.contextmanager
def recorded_by(recorder: Recorder) -> Iterator[None]:
    """Send the spans of this process to ``recorder`` during the block."""
    global _recorder
    before, _recorder = _recorder, recorder
    try:
        yield
    finally:
        _recorder = before
