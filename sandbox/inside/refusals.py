"""Ends of the strict run: the program has ended, or the tests need something that the strict run cannot do.

A test may expect an error. An end of the strict run must not count as this error, so the tests cannot catch it, and the
driver remembers it even if a bare ``except`` or a thread of the tests swallows it.
"""

from __future__ import annotations

_reasons: list[str] = []


class StrictRunEnded(BaseException):
    """Not derived from ``Exception``, so a test that expects an error does not catch it by mistake."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        _reasons.append(reason)


class ProgramGone(StrictRunEnded):
    """The program's process has ended, or its answer is malformed."""


class Refused(StrictRunEnded):
    """The strict run does not perform an operation of the tests, because the program could forge its result."""


def take_reason() -> str:
    """Return why the strict run has ended since the last call; "" if it has not."""
    reason = _reasons[0] if _reasons else ""
    _reasons.clear()
    return reason
