"""A token bucket: limits how many requests or tokens are used per minute. Used by ``builders.sampling.limiter``."""

from __future__ import annotations

import time
from collections.abc import Callable

BURST_S = 0.25  # a full bucket holds the tokens of this many seconds, so 5 s exceed the rate by less than 10 %


class Bucket:
    """A token bucket that is refilled at the rate ``per_minute``. A token stands for one request or one token of text.

    If ``per_minute`` is None, there is no limit until ``learn`` or ``restrict`` sets a rate.
    """

    def __init__(self, per_minute: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._own = per_minute / 60 if per_minute else None
        self._rate = self._own
        self._level = self._room
        self._at = clock()

    @property
    def learned(self) -> bool:
        """Whether the rate comes from the service's headers, not from the user."""
        return self._rate is not None and self._rate != self._own

    @property
    def per_second(self) -> float | None:
        """The number of tokens per second that are added to the bucket; None if there is no limit."""
        return self._rate

    def learn(self, per_second: float) -> None:
        """Set the rate to ``per_second``, which the service reports, or to the user's rate if that is lower."""
        self._rate = per_second if self._own is None else min(self._own, per_second)

    def restrict(self, per_minute: float | None) -> None:
        """Lower the rate to ``per_minute``. Do nothing if ``per_minute`` is None or higher than the rate."""
        if per_minute is None:
            return
        self._own = per_minute / 60 if self._own is None else min(self._own, per_minute / 60)
        self._rate = self._own if self._rate is None else min(self._own, self._rate)
        self._level, self._at = min(self._level, self._room), self._clock()

    def delay(self, amount: float, now: float) -> float:
        """Return the seconds until ``amount`` tokens are available, or until the bucket is full if this is earlier."""
        if self._rate is None:
            return 0.0
        self._refill(now)
        missing = min(amount, self._room) - self._level
        return missing / self._rate if missing > 1e-9 else 0.0

    def take(self, amount: float) -> None:
        """Remove ``amount`` tokens; a negative amount adds tokens.

        If the number of tokens is then below zero, the next requests wait longer.
        """
        if self._rate is not None:
            self._refill(self._clock())
            self._level = min(self._level - amount, self._room)

    @property
    def _room(self) -> float:
        return max(1.0, (self._rate or 0.0) * BURST_S)

    def _refill(self, now: float) -> None:
        self._level = min(self._room, self._level + (now - self._at) * (self._rate or 0.0))
        self._at = now
