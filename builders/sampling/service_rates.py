"""Limits the requests, input tokens and output tokens per minute of one service.

The limits come from the user and from the service's response headers. If the headers cause a long wait, the log says
why. Used by ``builders.sampling.limiter``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from bestofn.builders.sampling.availability import LONGEST_PAUSE_S
from bestofn.builders.sampling.rate_headers import Allowance, allowances
from bestofn.builders.sampling.token_bucket import Bucket

log = logging.getLogger(__name__)

LONG_S = 5.0  # a longer wait is explained in the log
NAMES: Mapping[str, str] = {"requests": "requests", "input": "input tokens", "output": "output tokens"}


class ServiceRates:
    """Three token buckets, for requests, input tokens and output tokens. A limit of None means no limit.

    ``reason`` says why requests wait because of response headers; "" if they do not. All times are in seconds.
    """

    def __init__(self, service: str, per_minute: Mapping[str, float | None], clock: Callable[[], float]) -> None:
        self.reason = ""
        self._service = service
        self._clock = clock
        self._buckets = {unit: Bucket(per_minute.get(unit), clock) for unit in NAMES}
        self._answer_tokens = 256.0  # running mean of the tokens per completion
        self._paused_until = 0.0
        self._logged: set[str] = set()

    def restrict(self, per_minute: Mapping[str, float | None]) -> None:
        """Apply each limit in ``per_minute`` that is lower than the present limit. None changes nothing."""
        for unit, rate in per_minute.items():
            self._buckets[unit].restrict(rate)

    def delay(self, input_tokens: float, answers: int, now: float) -> float:
        """Return the seconds until a request with ``input_tokens`` and ``answers`` completions may be sent."""
        if not self._has_limits():
            pause = max(0.0, self._paused_until - now)
            self.reason = self.reason if pause else ""
            return pause
        amounts = self._amounts(input_tokens, answers)
        delays = {unit: self._buckets[unit].delay(amount, now) for unit, amount in amounts.items()}
        slowest = max(delays, key=lambda unit: delays[unit])
        pause = max(0.0, self._paused_until - now)
        delay = max(delays[slowest], pause)
        if delay == 0.0:
            self.reason = ""
        elif delay > pause and self._buckets[slowest].learned:
            rate = 60 * (self._buckets[slowest].per_second or 0.0)
            self._explain(f"at most {rate:,.3g} {NAMES[slowest]} per minute", "", delay)
        return delay

    def take(self, input_tokens: float, answers: int) -> None:
        """Count the requests and tokens of a request that is sent now."""
        if self._has_limits():
            for unit, amount in self._amounts(input_tokens, answers).items():
                self._buckets[unit].take(amount)

    def correct(self, input_tokens: float, answers: int, used_input: int, used_output: int) -> None:
        """Replace the expected tokens of a request by the tokens that its reply reports.

        ``input_tokens`` and ``answers`` are the values that ``take`` received.
        """
        if used_output:
            share = used_output / max(answers, 1)
            self._buckets["output"].take(used_output - self._answer_tokens * answers)
            self._answer_tokens += 0.1 * (share - self._answer_tokens)
        if used_input:
            self._buckets["input"].take(used_input - input_tokens)

    def learn(self, headers: Mapping[str, str]) -> None:
        """Apply the rate limits in response headers."""
        for allowance in allowances(headers):
            if allowance.window_s <= 60:  # limits per hour or day do not change the rate
                self._buckets[allowance.of].learn(allowance.limit / allowance.window_s)
            if allowance.remaining is not None and allowance.remaining <= 0 and allowance.reset_s:
                self._pause(allowance, allowance.reset_s)

    def _has_limits(self) -> bool:
        return any(bucket.per_second is not None for bucket in self._buckets.values())

    def _amounts(self, input_tokens: float, answers: int) -> dict[str, float]:
        return {"requests": 1, "input": input_tokens, "output": self._answer_tokens * answers}

    def _pause(self, allowance: Allowance, reset_s: float) -> None:
        """Send nothing until the exhausted limit ``allowance`` resets in ``reset_s`` seconds.

        The pause is at most ``LONGEST_PAUSE_S``.
        """
        pause = min(reset_s, LONGEST_PAUSE_S)
        if self._clock() + pause > self._paused_until:
            self._paused_until = self._clock() + pause
            limit = f"{allowance.limit:,.0f} {NAMES[allowance.of]} per {allowance.window_s:,.0f} s"
            self._explain(limit, f" None of them is left, and the limit resets in {reset_s:,.0f} s.", pause)

    def _explain(self, limit: str, state: str, wait: float) -> None:
        """Set the reason why requests wait. If ``wait`` is long, the reason is logged once per ``limit``."""
        self.reason = (
            f"{self._service}: the headers of its replies allow {limit}.{state} The next request waits {wait:,.0f} s."
        )
        if wait > LONG_S and limit not in self._logged:
            self._logged.add(limit)
            log.warning("%s", self.reason)
