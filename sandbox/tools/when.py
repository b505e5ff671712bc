"""Dates and times as models write them, read into Python's; what cannot be read is a tool's failure."""

from __future__ import annotations

from datetime import date, datetime

from bestofn.sandbox.tools.mock_tool import ToolFailure


def a_day(text: str) -> date:
    """The day of an ISO date or time. Raises ``ToolFailure``."""
    try:
        return datetime.fromisoformat(text.strip()).date()
    except ValueError:
        raise ToolFailure("invalid", f"{text!r} is no ISO date; write YYYY-MM-DD") from None


def a_moment(text: str) -> datetime:
    """An ISO date and time without its offset: the worlds' clocks are local. Raises ``ToolFailure``."""
    try:
        return datetime.fromisoformat(text.strip().replace("Z", "")).replace(tzinfo=None)
    except ValueError:
        raise ToolFailure("invalid", f"{text!r} is no ISO date and time; write YYYY-MM-DDTHH:MM") from None


def written(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M")
