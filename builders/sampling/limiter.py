"""Limits how many requests to one model are in flight and sent per minute, and retries requests after errors.

Each (service, model) has one ``Limiter``, shared by all its callers: sampling, judges and mocked tools.
Only the limiter retries. It applies:

- ``RateLimits``: the limits that the user has set;
- token buckets for requests, input tokens and output tokens, with rates learned from response headers;
- ``Retry-After`` headers, to all waiting requests; if the wait would exceed ``patience_s``, the run stops;
- a limit on requests in flight (the window), which grows by one per round trip and shrinks by 30 % per overload (AIMD);
- a circuit breaker: after many failures in a row, only one request at a time is sent, until one succeeds.

Used by ``builders.sampling.online``.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, fields
from typing import TypeVar

from bestofn.builders.errors import (
    ConnectionFailed,
    OutageError,
    ProviderError,
    RateLimitError,
    RequestError,
    ServiceError,
    UnreadableReply,
)
from bestofn.builders.sampling.rate_headers import Allowance, allowances

T = TypeVar("T")
log = logging.getLogger(__name__)

RETRIED = (RateLimitError, ServiceError, ConnectionFailed)
BREAKS_AFTER = 12  # this many failures in a row open the circuit breaker
REFUSED_AT_START = 25  # this many refused requests before any success stop the run: the settings must be wrong
SHRINK = 0.7  # the window is multiplied by this at each overload
FIRST_BACKOFF_S = 0.5
LONGEST_PAUSE_S = 60.0
BURST_S = 0.25  # a full bucket holds the tokens of this many seconds, so 5 s exceed the rate by less than 10 %


@dataclass(frozen=True)
class RateLimits:
    """The rate limits that the user has set. If a limit is None, only the service's response headers limit the rate.

    ``timeout_s`` applies to one request, and ``retries`` is the number of retries per request. If a service is
    unavailable for more than ``patience_s`` seconds, the run stops. A stopped run can be resumed. A reply of more than
    ``reply_mb`` megabytes is an error.
    """

    concurrency: int = 64
    requests_per_minute: float | None = None
    input_tokens_per_minute: float | None = None
    output_tokens_per_minute: float | None = None
    retries: int = 6
    timeout_s: float = 600.0
    patience_s: float = 300.0
    reply_mb: float = 64.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            least = 0 if field.name == "retries" else 1e-9
            if value is not None and value < least:
                raise ValueError(f"{field.name} is {value}; expected {'at least 0' if least == 0 else 'more than 0'}")

    def stricter(self, other: RateLimits) -> RateLimits:
        """Combine two sets of limits: each field gets the smaller of the two values. None means no limit."""

        def least(name: str) -> float | None:
            known = [value for value in (getattr(self, name), getattr(other, name)) if value is not None]
            return min(known, default=None)

        return RateLimits(**{field.name: least(field.name) for field in fields(self)})  # type: ignore[arg-type]


@dataclass(slots=True)
class Size:
    """The expected input tokens of a request, and the number of its completions.

    After the reply, ``Limiter.used`` corrects the token buckets, because the real numbers of tokens are then known.
    """

    input_tokens: float = 0.0
    answers: int = 1


class Limiter:
    """Limits the requests to one model of one service. ``run(send, size)`` waits, sends and retries."""

    def __init__(self, name: str, limits: RateLimits) -> None:
        self.name = name
        self.limits = limits
        self.window = float(limits.concurrency)
        self.in_flight = 0
        self.retries = 0  # number of retries so far
        self.waiting_for = ""  # the reason why requests wait; "" if none waits
        self._requests = Bucket(limits.requests_per_minute)
        self._input = Bucket(limits.input_tokens_per_minute)
        self._output = Bucket(limits.output_tokens_per_minute)
        self._answer_tokens = 256.0  # running mean of the tokens per completion
        self._queue: deque[tuple[asyncio.Future[None], Size]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._paused_until = 0.0
        self._shrunk_at = 0.0
        self._failures = 0  # consecutive failures
        self._refusals = 0  # consecutive refusals
        self._succeeded = False  # whether any request has succeeded
        self._down_since: float | None = None
        self._outage: OutageError | None = None

    async def run(
        self, send: Callable[[], Awaitable[T]], size: Size = Size(), started: Callable[[], None] = lambda: None
    ) -> T:
        """Call ``send`` as soon as the limits allow, retry it after errors, and return its result.

        ``started`` is called before each attempt. ``RequestError`` and ``AuthenticationError`` are raised without a
        retry. Any other ``ProviderError`` is raised after ``retries`` retries. After an ``UnreadableReply`` there is
        only one retry, because the reply is paid for. Raises ``OutageError`` if the service is unavailable for longer
        than ``patience_s``.
        """
        failed = unread = 0
        while True:
            await self._turn(size, first=failed > 0)
            sent_at, probe = time.monotonic(), self._broken
            try:
                started()
                result = await send()
            except RETRIED as error:
                self._note_failure(error, sent_at)
                failed += not probe  # a request that tests an unavailable service does not count as a retry
                unread += isinstance(error, UnreadableReply)
                if failed > self.limits.retries or unread > 1:
                    raise
                has_retry_after = error.retry_after_s is not None
            except RequestError as error:
                self._note_refusal(error)
                raise
            else:
                self._note_success()
                return result
            finally:
                self.in_flight -= 1
                self._pump()
            self.retries += 1
            if not has_retry_after and not self._broken:
                await asyncio.sleep(_jittered(FIRST_BACKOFF_S * 2 ** (failed - 1)))

    def restrict(self, limits: RateLimits) -> None:
        """Apply each limit in ``limits`` that is stricter than the current one."""
        self.limits = self.limits.stricter(limits)
        self.window = min(self.window, float(self.limits.concurrency))
        self._requests.restrict(limits.requests_per_minute)
        self._input.restrict(limits.input_tokens_per_minute)
        self._output.restrict(limits.output_tokens_per_minute)

    def learn(self, headers: Mapping[str, str]) -> None:
        """Apply the rate limits in response headers."""
        for allowance in allowances(headers):
            self._apply(allowance)

    def used(self, size: Size, input_tokens: int, output_tokens: int) -> None:
        """Correct the token buckets after a reply: count the reported tokens instead of the expected ones."""
        if output_tokens:
            share = output_tokens / max(size.answers, 1)
            self._output.take(output_tokens - self._expected_output(size))
            self._answer_tokens += 0.1 * (share - self._answer_tokens)
        if input_tokens:
            self._input.take(input_tokens - size.input_tokens)

    # --- the queue ---------------------------------------------------------------------------------------------------

    async def _turn(self, size: Size, first: bool) -> None:
        """Wait until a request of ``size`` may be sent, then count it as in flight.

        If ``first`` is True, the request waits at the head of the queue. Raises ``OutageError`` if the service is
        unavailable.
        """
        if self._outage is not None:
            raise self._outage
        if not self._queue and self._delay(size) == 0.0:
            self._grant(size)
            return
        turn = asyncio.get_running_loop().create_future()
        (self._queue.appendleft if first else self._queue.append)((turn, size))
        self._pump()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.in_flight -= 1
                self._pump()
            raise

    def _pump(self) -> None:
        """Release the queued requests that may be sent now."""
        while self._queue:
            turn, size = self._queue[0]
            if turn.done():  # the caller was cancelled
                self._queue.popleft()
                continue
            delay = self._delay(size)
            if delay is None:
                return  # the next request that ends calls ``_pump`` again
            if delay > 0.0:
                self._wake_in(delay)
                return
            self._queue.popleft()
            self._grant(size)
            turn.set_result(None)

    def _delay(self, size: Size) -> float | None:
        """Return the seconds until a request of ``size`` may be sent; None if another request must end first."""
        allowed = 1 if self._broken else max(1, int(self.window))
        if self.in_flight >= allowed:
            return None
        now = time.monotonic()
        delay = max(
            self._paused_until - now,
            self._requests.delay(1, now),
            self._input.delay(size.input_tokens, now),
            self._output.delay(self._expected_output(size), now),
        )
        if delay <= 0.0:
            self.waiting_for = "" if not self._broken else self.waiting_for
            return 0.0
        return delay

    def _grant(self, size: Size) -> None:
        self.in_flight += 1
        self._requests.take(1)
        self._input.take(size.input_tokens)
        self._output.take(self._expected_output(size))

    def _expected_output(self, size: Size) -> float:
        return self._answer_tokens * size.answers

    def _wake_in(self, delay: float) -> None:
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_later(delay, self._pump)

    # --- successes and failures --------------------------------------------------------------------------------------

    @property
    def _broken(self) -> bool:
        return self._failures >= BREAKS_AFTER

    def _note_success(self) -> None:
        if self._broken:
            log.warning("%s answers requests again", self.name)
            self.window = max(1.0, self.window / 2)
        self._failures = self._refusals = 0
        self._succeeded = True
        self._down_since = None
        self.waiting_for = ""
        if self.window < self.limits.concurrency:
            self.window = min(float(self.limits.concurrency), self.window + 1 / self.window)

    def _note_failure(self, error: ProviderError, sent_at: float) -> None:
        now = time.monotonic()
        self._failures += 1
        self._down_since = self._down_since or sent_at
        overloaded = isinstance(error, RateLimitError) or error.status in (503, 529)
        if overloaded and sent_at >= self._shrunk_at:  # an older request says nothing about the present window
            self.window = max(1.0, self.window * SHRINK)
            self._shrunk_at = now
        patience = self.limits.patience_s if self._succeeded else min(self.limits.patience_s, 20.0)
        pause = error.retry_after_s or 0.0
        longest = self.limits.patience_s - (now - self._down_since if self._broken else 0.0)
        if pause > max(longest, 0.0):
            self._give_up(
                f"{self.name} requires a wait of {pause:,.0f} s, but provider.limits.patience_s="
                f"{self.limits.patience_s:g} allows {max(longest, 0.0):,.0f} s: {error}",
                "Run the same command again after that time, or set a larger provider.limits.patience_s",
            )
            return
        if self._broken:
            left = max(0.0, patience - (now - self._down_since))  # a pause lasts at most this many seconds
            pause = max(pause, min(left, _jittered(FIRST_BACKOFF_S * 2 ** min(self._failures - BREAKS_AFTER, 10))))
        if pause > 0.0 and now + pause > self._paused_until:
            self._paused_until = now + pause
            self.waiting_for = f"{self.name}: waiting {pause:.1f} s after {self._failures} failures in a row: {error}"
            if self._broken or pause >= 5:
                log.warning("%s", self.waiting_for)
        if self._broken and now - self._down_since > patience:
            self._give_up(
                f"{self.name} has not answered for {now - self._down_since:.0f} s "
                f"({self._failures} failures in a row). The last error: {error}"
            )

    def _note_refusal(self, error: RequestError) -> None:
        self._refusals += 1
        if not self._succeeded and self._refusals >= REFUSED_AT_START:
            self._give_up(f"{self.name} refused each of the first {self._refusals} requests. The last error: {error}")

    def _give_up(
        self, reason: str, remedy: str = "Check provider.base_url, provider.model and the status of the service"
    ) -> None:
        self._outage = OutageError(f"{reason}. {remedy}.")
        while self._queue:
            turn, _ = self._queue.popleft()
            if not turn.done():
                turn.set_exception(self._outage)

    def _apply(self, allowance: Allowance) -> None:
        bucket = {"requests": self._requests, "input": self._input, "output": self._output}[allowance.of]
        if allowance.window_s <= 60:  # limits per hour or day do not change the rate
            bucket.learn(allowance.limit / allowance.window_s)
        if allowance.remaining is not None and allowance.remaining <= 0 and allowance.reset_s:
            until = time.monotonic() + min(allowance.reset_s, LONGEST_PAUSE_S)
            if until > self._paused_until:
                self._paused_until = until
                self.waiting_for = f"{self.name}: the rate limit for {allowance.of} is used up for this period"


class Bucket:
    """A token bucket that is refilled at the rate ``per_minute``.

    If ``per_minute`` is None, there is no limit until ``learn`` or ``restrict`` sets a rate.
    """

    def __init__(self, per_minute: float | None) -> None:
        self._own = per_minute / 60 if per_minute else None
        self._rate = self._own
        self._level = self._room
        self._at = time.monotonic()

    def learn(self, per_second: float) -> None:
        """Set the rate to the service's rate, or to the user's rate if that is lower."""
        self._rate = per_second if self._own is None else min(self._own, per_second)

    def restrict(self, per_minute: float | None) -> None:
        """Lower the rate to ``per_minute``; do nothing if it is None or if the rate is already lower."""
        if per_minute is None:
            return
        self._own = per_minute / 60 if self._own is None else min(self._own, per_minute / 60)
        self._rate = self._own if self._rate is None else min(self._own, self._rate)
        self._level, self._at = min(self._level, self._room), time.monotonic()

    def delay(self, amount: float, now: float) -> float:
        """Return the seconds until ``amount`` tokens are available, or until the bucket is full if that is earlier."""
        if self._rate is None:
            return 0.0
        self._refill(now)
        missing = min(amount, self._room) - self._level
        return missing / self._rate if missing > 1e-9 else 0.0

    def take(self, amount: float) -> None:
        """Remove ``amount`` tokens; a negative amount adds tokens. A level below zero delays the next requests."""
        if self._rate is not None:
            self._refill(time.monotonic())
            self._level = min(self._level - amount, self._room)

    @property
    def _room(self) -> float:
        return max(1.0, (self._rate or 0.0) * BURST_S)

    def _refill(self, now: float) -> None:
        self._level = min(self._room, self._level + (now - self._at) * (self._rate or 0.0))
        self._at = now


_limiters: weakref.WeakValueDictionary[str, Limiter] = weakref.WeakValueDictionary()


def limiter_for(name: str, limits: RateLimits) -> Limiter:
    """Return the limiter of this process for ``name`` (service and model).

    If several calls give limits for the same ``name``, the strictest limits apply.
    """
    limiter = _limiters.get(name)
    if limiter is None:
        limiter = _limiters[name] = Limiter(name, limits)
    elif limiter.limits != limits:
        limiter.restrict(limits)
    return limiter


def _jittered(seconds: float) -> float:
    return min(seconds, LONGEST_PAUSE_S) * random.uniform(0.5, 1.0)
