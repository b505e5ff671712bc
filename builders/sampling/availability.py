"""Decides from the results of requests whether a service is available, and when it is tested again.

After ``BREAKS_AFTER`` failures in a row the service is unavailable. Then only one request at a time is sent: a probe.
Each pause before a probe is at most half of the time that the outage has lasted. So a service that is back after T
seconds gets a probe within T/2, however many requests were in flight.

Used by ``builders.sampling.limiter``.
"""

from __future__ import annotations

import random

BREAKS_AFTER = 12  # this many failures in a row open the circuit breaker
FIRST_PROBE_S = 0.1  # the shortest pause before a probe
PROBE_SHARE = 0.5  # a pause before a probe is at most this share of the outage so far
LONGEST_PAUSE_S = 60.0
PATIENCE_AT_START_S = 20.0  # a service that has never answered gets at most this many seconds


class Availability:
    """The state of one service. All times are in seconds of one clock.

    ``down`` is True during an outage, ``failures`` counts the failures in a row, and ``answered`` is True after the
    first success.
    """

    def __init__(self, patience_s: float) -> None:
        self.patience_s = patience_s
        self.failures = 0
        self.answered = False
        self.down = False
        self._failing_since = 0.0  # the first failure since the last success
        self._unanswered_since = 0.0  # the time when that request was sent
        self._answered_at = float("-inf")

    def note_success(self, probe: bool, now: float) -> bool:
        """Count a success, and return whether it ends an outage.

        Only a probe ends an outage: the reply to an earlier request does not show that the service is back.
        """
        self.answered = True
        if self.down and not probe:
            return False
        ended, self.down = self.down, False
        self.failures, self._answered_at = 0, now
        return ended

    def note_failure(self, sent_at: float, now: float) -> bool:
        """Count a failure, and return whether an outage begins."""
        if not self.failures:
            self._failing_since = now
            self._unanswered_since = max(sent_at, self._answered_at)
        self.failures += 1
        if self.down or self.failures < BREAKS_AFTER:
            return False
        self.down = True
        return True

    def patience_left(self, now: float) -> float:
        """Return how long the service may still be unavailable before the run stops; negative if it is too late."""
        patience = self.patience_s if self.answered else min(self.patience_s, PATIENCE_AT_START_S)
        return patience - self.unanswered_for(now)

    def unanswered_for(self, now: float) -> float:
        """Return for how long no request has been answered; 0 if the last one was."""
        return now - self._unanswered_since if self.failures else 0.0

    def pause(self, now: float) -> float:
        """Return the pause before the next probe."""
        longest = min(LONGEST_PAUSE_S, max(FIRST_PROBE_S, PROBE_SHARE * (now - self._failing_since)))
        return min(longest * random.uniform(0.5, 1.0), max(0.0, self.patience_left(now)))
