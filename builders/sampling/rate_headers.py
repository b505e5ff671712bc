"""Parses rate limits from response headers.

OpenAI      x-ratelimit-{limit,remaining,reset}-{requests,tokens}; reset is a duration ("6m0s", "20ms")
Anthropic   anthropic-ratelimit-{requests,input-tokens,output-tokens}-{limit,remaining,reset}; reset is a time
both        retry-after in seconds or as an HTTP date; OpenAI also retry-after-ms

Used by ``builders.sampling.limiter`` and ``builders.providers.http_transport``.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Literal

WINDOWS_S = (1.0, 60.0, 3600.0, 86400.0)
LONGEST_WAIT_S = 31 * 86400.0  # a longer wait is an error of the service, and is ignored
MOST_UNITS = 1e12  # a higher limit is an error of the service, and is ignored
_PART = re.compile(r"([\d.]+)(ms|us|µs|s|m|h|d)")
_UNIT_S = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


Unit = Literal["requests", "input", "output"]
_NAMES: Mapping[Unit, Sequence[str]] = {
    "requests": ("anthropic-ratelimit-requests-{}", "x-ratelimit-{}-requests"),
    "input": ("anthropic-ratelimit-input-tokens-{}", "x-ratelimit-{}-tokens"),
    "output": ("anthropic-ratelimit-output-tokens-{}",),
}

_HEADERS: Mapping[Unit, Sequence[tuple[str, str, str]]] = {
    of: [(name.format("limit"), name.format("remaining"), name.format("reset")) for name in names]
    for of, names in _NAMES.items()
}
"""Unit -> the names of the headers with the limit, with what remains of it, and with the time of its reset."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """A rate limit from response headers: at most ``limit`` units per ``window_s`` seconds.

    ``of`` names the unit: requests, input tokens or output tokens. ``remaining`` units may still be used until the
    limit resets in ``reset_s`` seconds. ``remaining`` and ``reset_s`` are None if the headers do not report them.
    """

    of: Unit
    limit: float
    window_s: float = 60.0
    remaining: float | None = None
    reset_s: float | None = None


def allowances(headers: Mapping[str, str]) -> Iterator[Allowance]:
    """Yield the rate limits in ``headers``.

    The names of the headers must be in lower case, unless ``headers`` ignores case. A limit below 1 or above
    ``MOST_UNITS`` is ignored.
    """
    for of, names in _HEADERS.items():
        for of_limit, of_remaining, of_reset in names:
            limit = _number(headers.get(of_limit))
            if limit and 1 <= limit <= MOST_UNITS:
                remaining = _number(headers.get(of_remaining))
                reset_s = _bounded(_duration(headers.get(of_reset), headers))
                window_s = _window(limit, remaining, reset_s) if of_limit.startswith("x-") else 60.0
                yield Allowance(of, limit, window_s, remaining, reset_s)
                break


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait according to the header ``retry-after-ms`` or ``retry-after``.

    Returns None if the header is missing or invalid, or if the wait is negative or longer than ``LONGEST_WAIT_S``. A
    date is compared with the date of the reply, because the clocks of the service and of this machine may differ.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return _bounded(milliseconds / 1000)
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is not None:
        return _bounded(seconds)
    at = _http_date(text)
    return None if at is None else _bounded(max(0.0, at - _now(headers)))


def _now(headers: Mapping[str, str]) -> float:
    """Return the time of the reply on the service's clock; the time of this machine if the reply has no date."""
    at = _http_date(headers.get("date"))
    return time.time() if at is None else at


def _http_date(text: str | None) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp() if text else None
    except (TypeError, ValueError, OverflowError):
        return None


def _bounded(seconds: float | None) -> float | None:
    """Return ``seconds`` if it is a possible wait, from 0 to ``LONGEST_WAIT_S``; otherwise None."""
    return seconds if seconds is not None and 0 <= seconds <= LONGEST_WAIT_S else None


def _window(limit: float, remaining: float | None, reset_s: float | None) -> float:
    """Estimate the period in seconds to which ``limit`` applies.

    OpenAI reports ``reset_s``, the time until the bucket is full again. The estimate is ``reset_s`` divided by the
    used share of ``limit``. Returns the nearest of ``WINDOWS_S``; 60 if ``reset_s`` or ``remaining`` is missing.
    """
    if not reset_s or remaining is None or not 0 <= remaining < limit:
        return 60.0
    guess = reset_s * limit / (limit - remaining)
    return min(WINDOWS_S, key=lambda window: abs(window - guess) / min(window, guess))


def _number(text: str | None) -> float | None:
    try:
        number = float(text) if text else None
    except ValueError:
        return None
    return number if number is not None and number == number and abs(number) != float("inf") else None


def _duration(text: str | None, headers: Mapping[str, str]) -> float | None:
    """Convert ``text`` to seconds: a duration ("6m0s", "20ms", "12"), or the time from now until an RFC 3339 date.

    Returns None if ``text`` has another format.
    """
    if not text:
        return None
    seconds = _number(text)
    if seconds is not None:
        return seconds
    parts = _PART.findall(text)
    if parts and "".join(number + unit for number, unit in parts) == text:
        return sum((_number(number) or 0.0) * _UNIT_S[unit] for number, unit in parts)
    try:
        return max(0.0, datetime.fromisoformat(text).timestamp() - _now(headers))
    except (ValueError, OverflowError):
        return None
