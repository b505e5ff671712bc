from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from bestofn.builders.sampling.rates import allowances, retry_after


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "1e300"}, None),
        ({"retry-after": "Sun, 22 Nov 2026 08:00:20 GMT", "date": "Sun, 22 Nov 2026 08:00:00 GMT"}, 20.0),
        ({"retry-after": "Sun, 22 Nov 2026 08:00:00 GMT", "date": "Sun, 22 Nov 2026 08:00:05 GMT"}, 0.0),
        ({"retry-after": "Sun, 22 Nov 9999 08:00:00 GMT", "date": "Sun, 22 Nov 2026 08:00:05 GMT"}, None),
    ],
)
def test_retry_after(headers, expected) -> None:
    assert retry_after(headers) == expected


def test_retry_after_as_a_date() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    assert retry_after({"retry-after": date}) == pytest.approx(20, abs=2)


def test_openai_tells_requests_and_tokens_with_durations() -> None:
    headers = {
        "x-ratelimit-limit-requests": "5000",
        "x-ratelimit-remaining-requests": "4999",
        "x-ratelimit-reset-requests": "12ms",
        "x-ratelimit-limit-tokens": "160000",
        "x-ratelimit-remaining-tokens": "40000",
        "x-ratelimit-reset-tokens": "45s",
    }
    requests, tokens = allowances(headers)
    assert (requests.of, requests.limit, requests.window_s, requests.reset_s) == ("requests", 5000, 60, 0.012)
    assert (tokens.of, tokens.limit, tokens.window_s, tokens.remaining) == ("input", 160000, 60, 40000)


def test_a_daily_limit_is_known_by_its_reset() -> None:
    (requests,) = allowances(
        {
            "x-ratelimit-limit-requests": "200",
            "x-ratelimit-remaining-requests": "199",
            "x-ratelimit-reset-requests": "7m12s",
        }
    )
    assert requests.window_s == 86400


def test_anthropic_tells_input_and_output_with_times() -> None:
    reset = (datetime.now(UTC) + timedelta(seconds=30)).isoformat().replace("+00:00", "Z")
    headers = {}
    for kind in ("requests", "input-tokens", "output-tokens"):
        headers[f"anthropic-ratelimit-{kind}-limit"] = "1000"
        headers[f"anthropic-ratelimit-{kind}-remaining"] = "0"
        headers[f"anthropic-ratelimit-{kind}-reset"] = reset
    told = {allowance.of: allowance for allowance in allowances(headers)}
    assert set(told) == {"requests", "input", "output"}
    assert told["output"].reset_s == pytest.approx(30, abs=2)
    assert told["output"].remaining == 0


@pytest.mark.parametrize(
    "limit",
    [
        "many",
        "0",
        "1e300",
        "nan",
    ],
)
def test_a_nonsense_limit_is_ignored(limit) -> None:
    assert list(allowances({"x-ratelimit-limit-requests": limit})) == []


@pytest.mark.parametrize(
    "reset",
    [
        "1e12",
        "-5",
        "soon",
        "9999-12-31T00:00:00Z",
    ],
)
def test_a_nonsense_reset_is_ignored(reset) -> None:
    (allowance,) = allowances({"x-ratelimit-limit-requests": "10", "x-ratelimit-reset-requests": reset})
    assert allowance.reset_s in (None, 0.0)


def test_a_reset_is_compared_with_the_date_of_the_reply() -> None:
    headers = {
        "date": "Sun, 22 Nov 2026 08:00:00 GMT",
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": "2026-11-22T08:00:07Z",
    }
    (allowance,) = allowances(headers)
    assert allowance.reset_s == 7
