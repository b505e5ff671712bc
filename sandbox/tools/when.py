"""Parses dates and times that models wrote, and formats them. Text that cannot be parsed is a ``ToolFailure``."""

from __future__ import annotations

from datetime import date, datetime

from bestofn.sandbox.tools.mock_tool import ToolFailure


def parse_day(text: str) -> date:
    """The date of an ISO date or time. Raises ``ToolFailure``."""
    try:
        return datetime.fromisoformat(text.strip()).date()
    except ValueError:
        raise ToolFailure("invalid", f"{text!r} is no ISO date; write YYYY-MM-DD") from None


def parse_time(text: str) -> datetime:
    """An ISO date and time without its offset, because the clock of a world is local. Raises ``ToolFailure``."""
    try:
        return datetime.fromisoformat(text.strip().replace("Z", "")).replace(tzinfo=None)
    except ValueError:
        raise ToolFailure("invalid", f"{text!r} is no ISO date and time; write YYYY-MM-DDTHH:MM") from None


def format_time(moment: datetime) -> str:
    """Date and time to the minute: "2026-03-16T09:00"."""
    return moment.strftime("%Y-%m-%dT%H:%M")
