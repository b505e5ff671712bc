"""Decides from the results of requests whether a service is available, and when an unavailable service gets a request.

After ``BREAKS_AFTER`` failures in a row the service is unavailable. Then only one request at a time is sent: a probe.
Each pause before a probe is at most half of the time that the outage has lasted. So if an outage lasts T seconds, the
next probe is sent at most T/2 seconds after its end. This holds for any number of requests in flight.

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
    """The availability of one service. All times are in seconds of one clock.

    ``down`` is True during an outage. ``failures`` is the number of failures in a row. ``answered`` is True after the
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
        """Record a success at the time ``now``, and return whether it ends an outage.

        Only a probe ends an outage: the reply to an earlier request does not show that the service is back.
        """
        self.answered = True
        if self.down and not probe:
            return False
        ended, self.down = self.down, False
        self.failures, self._answered_at = 0, now
        return ended

    def note_failure(self, sent_at: float, now: float) -> bool:
        """Record a failure at the time ``now``, and return whether an outage begins.

        ``sent_at`` is the time when the failed request was sent.
        """
        if not self.failures:
            self._failing_since = now
            self._unanswered_since = max(sent_at, self._answered_at)
        self.failures += 1
        if self.down or self.failures < BREAKS_AFTER:
            return False
        self.down = True
        return True

    def patience_left(self, now: float) -> float:
        """Return the seconds until the run stops if no request succeeds; negative if that time has passed."""
        patience = self.patience_s if self.answered else min(self.patience_s, PATIENCE_AT_START_S)
        return patience - self.unanswered_for(now)

    def unanswered_for(self, now: float) -> float:
        """Return for how many seconds no request has succeeded; 0 if the last request succeeded."""
        return now - self._unanswered_since if self.failures else 0.0

    def pause(self, now: float) -> float:
        """Return the pause before the next probe in seconds."""
        longest = min(LONGEST_PAUSE_S, max(FIRST_PROBE_S, PROBE_SHARE * (now - self._failing_since)))
        return min(longest * random.uniform(0.5, 1.0), max(0.0, self.patience_left(now)))
