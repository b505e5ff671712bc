"""Counts the attempts to get a reply from one service, for summaries and metrics.

Used by ``builders.sampling.limiter``.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from typing import TypedDict

from bestofn.builders.errors import ProviderError

LATENCIES = 1_000  # quantiles of the latency are computed from this many attempts
QUANTILES = (0.5, 0.9, 0.99)
log = logging.getLogger(__name__)


class ServiceState(TypedDict):
    """The present state of a service's limiter.

    Counts are totals since the limiter was created. ``window`` is the present limit on requests in flight.
    ``latency_s`` maps a quantile to seconds.
    """

    service: str
    in_flight: int
    queued: int
    window: float
    attempts: int
    failed: dict[str, int]
    retried: dict[str, int]
    rate_limited_share: float
    latency_s: dict[str, float]


class AttemptCounts:
    """Counts the attempts to get a reply from one service.

    ``failed`` and ``retried`` map a cause to a number of attempts.
    """

    def __init__(self, service: str) -> None:
        self.service = service
        self.sent = 0
        self.failed: Counter[str] = Counter()
        self.retried: Counter[str] = Counter()
        self._seconds: deque[float] = deque(maxlen=LATENCIES)

    def note_success(self, seconds: float) -> None:
        """Record ``seconds``, the latency of a successful attempt."""
        self._seconds.append(seconds)

    def note_failure(self, error: ProviderError) -> None:
        """Count a failed attempt under the cause of its ``error``."""
        self.failed[error.cause] += 1
        log.debug("%s: %s: %s", self.service, error.cause, error)

    def state(self, *, in_flight: int, queued: int, window: float) -> ServiceState:
        """Return the counts with the present state of the limiter. Other threads may call this method.

        ``window`` is the limit on requests in flight.
        """
        seconds = sorted(self._seconds.copy())
        latency = {f"{q:g}": round(seconds[int(q * (len(seconds) - 1))], 3) for q in QUANTILES} if seconds else {}
        return {
            "service": self.service,
            "in_flight": in_flight,
            "queued": queued,
            "window": round(window, 1),
            "attempts": self.sent,
            "failed": dict(self.failed.copy()),
            "retried": dict(self.retried.copy()),
            "rate_limited_share": round(self.failed["status 429"] / max(self.sent, 1), 6),
            "latency_s": latency,
        }
