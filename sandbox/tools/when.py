"""Parses and formats dates and times that a model wrote. Raises ``ToolFailure`` if the text cannot be parsed."""

from __future__ import annotations

from datetime import date, datetime

from bestofn.sandbox.tools.mock_tool import ToolFailure


def parse_day(text: str) -> date:
    """Return the date in ``text``, which is an ISO date with or without a time.

    Raises ``ToolFailure`` if ``text`` cannot be parsed.
    """
    try:
        return datetime.fromisoformat(text.strip()).date()
    except ValueError:
        raise ToolFailure("invalid", f"{text!r} is not an ISO date; write YYYY-MM-DD") from None


def parse_time(text: str) -> datetime:
    """Parse an ISO date and time and drop its UTC offset, because the clock of a world is local.

    Raises ``ToolFailure`` if the text cannot be parsed.
    """
    try:
        return datetime.fromisoformat(text.strip().replace("Z", "")).replace(tzinfo=None)
    except ValueError:
        raise ToolFailure("invalid", f"{text!r} is not an ISO date and time; write YYYY-MM-DDTHH:MM") from None


def format_time(moment: datetime) -> str:
    """Return date and time to the minute, for example "2026-03-16T09:00"."""
    return moment.strftime("%Y-%m-%dT%H:%M")
