"""Mock tools for times, dates, holidays and a calendar. Calls can change the calendar.

The current time is fixed. No tool reads a clock.
"""

from __future__ import annotations

import calendar
from datetime import UTC, date, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from bestofn.sandbox.tools.mock_tool import Result, ToolFailure, tool
from bestofn.sandbox.tools.places import country_named, find_city
from bestofn.sandbox.tools.seeded import Seeded
from bestofn.sandbox.tools.shapes import Date, DateTime
from bestofn.sandbox.tools.when import format_time, parse_day, parse_time
from bestofn.sandbox.tools.world import NOW, Table, World, table

EVENT = {"event_id": str, "title": str, "start": str, "end": str, "attendees": [str]}


@table("events")
def _events(chance: Seeded) -> Table:
    titles = ["Team stand-up", "Design review", "Lunch with Ada", "Dentist", "Budget meeting", "Yoga"]
    events: Table = {}
    for number, title in enumerate(titles):
        start = datetime(NOW.year, NOW.month, NOW.day) + timedelta(days=number, hours=chance.integer(9, 15))
        key = f"EVT-{1001 + number}"
        events[key] = {
            "event_id": key,
            "title": title,
            "start": format_time(start),
            "end": format_time(start + timedelta(minutes=chance.choice([30, 60, 90]))),
            "attendees": ["me@example.com"] + (["ada.almeida@example.com"] if number in (1, 2) else []),
        }
    return events


@table("reminders")
def _reminders(chance: Seeded) -> Table:
    return {}


def _zone(name: str) -> ZoneInfo:
    """Return the time zone for an IANA name or a city. Raises ``ToolFailure`` if the name is unknown."""
    city = find_city(name)
    try:
        return ZoneInfo(city.timezone if city and "/" not in name else name.strip())
    except (KeyError, ValueError, OSError):
        raise ToolFailure("not_found", f"there is no time zone {name!r}; write it as in 'Europe/Oslo'") from None


@tool(
    "time.now",
    {"timezone": str, "datetime": str, "weekday": str},
    {},
    {"timezone": "Asia/Tokyo"},
    fails=[{"timezone": "Mars/Olympus"}],
    aliases=["get_current_time", "current_time", "get_time", "get_current_date", "get_datetime", "today"],
)
def now(world: World, timezone: str = "UTC") -> Result:
    """Get the current date, time and weekday in a time zone."""
    moment = world.now.astimezone(_zone(timezone))
    return {"timezone": timezone, "datetime": moment.isoformat(timespec="minutes"), "weekday": moment.strftime("%A")}


@tool(
    "time.convert",
    {"from": str, "to": str, "offset_hours": float},
    {"dt": "2026-07-01T12:00", "from_tz": "Europe/London", "to_tz": "America/New_York"},
    fails=[
        {"dt": "noon", "from_tz": "UTC", "to_tz": "UTC"},
        {"dt": "2026-07-01T12:00", "from_tz": "X/Y", "to_tz": "UTC"},
    ],
    aliases=["convert_time", "timezone_converter", "convert_timezone", "time_zone_conversion"],
)
def convert_time(world: World, dt: DateTime, from_tz: str, to_tz: str) -> Result:
    """Convert a local date and time from one time zone to another.

    Returns both times and the difference between the time zones in hours.
    """
    source = parse_time(dt).replace(tzinfo=_zone(from_tz))
    target = source.astimezone(_zone(to_tz))
    hours = ((target.utcoffset() or timedelta()) - (source.utcoffset() or timedelta())).total_seconds() / 3600
    return {
        "from": source.isoformat(timespec="minutes"),
        "to": target.isoformat(timespec="minutes"),
        "offset_hours": hours,
    }


def _shifted(day: date, days: int, months: int) -> date:
    month = day.month - 1 + months
    year, month = day.year + month // 12, month % 12 + 1
    if not 1 <= year <= 9998 or abs(days) > 1_000_000:
        raise ToolFailure("invalid", "the resulting date is outside the years 1 to 9998")
    day = date(year, month, min(day.day, calendar.monthrange(year, month)[1]))
    try:
        return day + timedelta(days=days)
    except OverflowError:
        raise ToolFailure("invalid", "the resulting date is outside the years 1 to 9998") from None


@tool(
    "date.add",
    {"date": str, "weekday": str},
    {"date": "2026-01-31", "months": 1},
    {"date": "2026-03-16", "days": -20},
    fails=[{"date": "2026-02-30", "days": 1}],
    aliases=["add_days", "date_add", "add_to_date", "add_months", "date_calculator"],
)
def add(world: World, date: Date, days: int = 0, months: int = 0) -> Result:
    """Add days and months to a date; negative numbers subtract them. Returns the date and its weekday.

    If the month has no such day, its last day is used: 31 January plus one month is 28 February.
    """
    shifted = _shifted(parse_day(date), days, months)
    return {"date": shifted.isoformat(), "weekday": shifted.strftime("%A")}


@tool(
    "date.diff",
    {"difference": float, "unit": str},
    {"start": "2026-01-01", "end": "2026-12-25"},
    {"start": "2026-01-01", "end": "2026-03-16", "unit": "weeks"},
    fails=[{"start": "now", "end": "then"}],
    aliases=["date_difference", "days_between", "calculate_date_difference", "date_diff", "get_days_between"],
)
def diff(world: World, start: Date, end: Date, unit: Literal["days", "weeks", "months", "years"] = "days") -> Result:
    """Get the time between two dates in days, weeks, full months or full years.

    The result is negative if the end is before the start.
    """
    first, last = parse_day(start), parse_day(end)
    days = (last - first).days
    low, high = sorted((first, last))
    months = (high.year - low.year) * 12 + high.month - low.month - (high.day < low.day)
    sign = 1 if days >= 0 else -1
    value = {"days": days, "weeks": round(days / 7, 2), "months": sign * months, "years": sign * (months // 12)}[unit]
    return {"difference": value, "unit": unit}


@tool(
    "date.weekday",
    {"date": str, "weekday": str, "iso_week": int},
    {"date": "2026-03-16"},
    fails=[{"date": "16.3.2026"}],
    aliases=["day_of_week", "get_weekday", "get_day_of_week", "what_day_is"],
)
def weekday(world: World, date: Date) -> Result:
    """Get the day of the week and the ISO week number of a date."""
    day = parse_day(date)
    return {"date": day.isoformat(), "weekday": day.strftime("%A"), "iso_week": day.isocalendar().week}


def _easter(year: int) -> date:
    """Return Easter Sunday in the Gregorian calendar (anonymous Gregorian algorithm)."""
    a, b, c = year % 19, year // 100, year % 100
    d, e = divmod(b, 4)
    g = (8 * b + 13) // 25
    h = (19 * a + b - d - g + 15) % 30
    i, k = divmod(c, 4)
    m = (32 + 2 * e + 2 * i - h - k) % 7
    n = (a + 11 * h + 22 * m) // 451
    month, day = divmod(h + m - 7 * n + 114, 31)
    return date(year, month, day + 1)


_FIXED = {
    "US": {(6, 19): "Juneteenth", (7, 4): "Independence Day", (11, 11): "Veterans Day"},
    "NO": {(5, 1): "Labour Day", (5, 17): "Constitution Day"},
    "DE": {(5, 1): "Labour Day", (10, 3): "German Unity Day"},
    "FR": {(5, 1): "Labour Day", (5, 8): "Victory Day", (7, 14): "Bastille Day", (11, 11): "Armistice Day"},
    "GB": {(12, 26): "Boxing Day"},
}


def holidays_of(code: str, year: int) -> dict[date, str]:
    """Return the public holidays of a country in the mock world, by date.

    They are New Year's Day, Easter Monday (not in the US), Christmas Day and a few national holidays.
    """
    days = {date(year, 1, 1): "New Year's Day", date(year, 12, 25): "Christmas Day"}
    if code != "US":
        days[_easter(year) + timedelta(days=1)] = "Easter Monday"
    days |= {date(year, month, day): name for (month, day), name in _FIXED.get(code, {}).items()}
    return dict(sorted(days.items()))


@tool(
    "date.business_days",
    {"business_days": int, "holidays": [str]},
    {"start": "2026-12-21", "end": "2026-12-31", "country": "US"},
    fails=[{"start": "2026-12-31", "end": "2026-12-01"}, {"start": "1900-01-01", "end": "2100-01-01"}],
    aliases=["business_days", "count_business_days", "working_days", "workdays_between"],
)
def business_days(world: World, start: Date, end: Date, country: str | None = None) -> Result:
    """Count the working days from one date to another, both included.

    Weekends are not counted. If a country is given, its public holidays are not counted either, and their names are
    returned.
    """
    first, last = parse_day(start), parse_day(end)
    if not 0 <= (last - first).days <= 4000:
        raise ToolFailure("invalid", "end must be at or after start, and at most 4000 days after start")
    free: dict[date, str] = {}
    if country:
        code = country_named(country).code
        for year in range(first.year, last.year + 1):
            free |= holidays_of(code, year)
    days = [first + timedelta(days=ahead) for ahead in range((last - first).days + 1)]
    working = [day for day in days if day.weekday() < 5]
    return {
        "business_days": sum(day not in free for day in working),
        "holidays": [free[day] for day in working if day in free],
    }


@tool(
    "holidays.list",
    {"country": str, "year": int, "holidays": [{"date": str, "name": str}]},
    {"country": "Norway", "year": 2026},
    fails=[{"country": "Atlantis", "year": 2026}, {"country": "US", "year": 1200}],
    aliases=["get_holidays", "list_holidays", "public_holidays", "get_public_holidays"],
)
def list_holidays(world: World, country: str, year: int) -> Result:
    """List the main public holidays of a country in a year, with their dates."""
    place = country_named(country)
    if not 1900 <= year <= 2100:
        raise ToolFailure("invalid", f"year is {year}; expected 1900 to 2100")
    listed = [{"date": day.isoformat(), "name": name} for day, name in holidays_of(place.code, year).items()]
    return {"country": place.name, "year": year, "holidays": listed}


@tool(
    "calendar.list_events",
    {"events": [EVENT]},
    {"from": "2026-03-16T00:00", "to": "2026-03-19T23:59"},
    fails=[{"from": "2026-03-19", "to": "2026-03-16"}],
    aliases=[
        "list_events",
        "get_calendar_events",
        "get_events",
        "list_calendar_events",
        "check_calendar",
        "get_schedule",
    ],
)
def list_events(world: World, from_: DateTime, to: DateTime) -> Result:
    """List the calendar events that start between two times, earliest first."""
    first, last = parse_time(from_), parse_time(to)
    if last < first:
        raise ToolFailure("invalid", f"'to' ({to}) is before 'from' ({from_})")
    matches = [event for event in world["events"].values() if first <= parse_time(event["start"]) <= last]
    return {"events": sorted(matches, key=lambda event: (event["start"], event["event_id"]))}


@tool(
    "calendar.create_event",
    EVENT,
    {
        "title": "Kick-off",
        "start": "2026-03-20T10:00",
        "end": "2026-03-20T11:00",
        "attendees": ["ada.almeida@example.com"],
    },
    fails=[
        {"title": "Backwards", "start": "2026-03-20T11:00", "end": "2026-03-20T10:00"},
        {"title": "x", "start": "soon", "end": "later"},
    ],
    aliases=[
        "create_event",
        "create_calendar_event",
        "add_event",
        "schedule_meeting",
        "add_calendar_event",
        "book_meeting",
    ],
    changes=True,
)
def create_event(
    world: World, title: str, start: DateTime, end: DateTime, attendees: list[str] | None = None
) -> Result:
    """Create an event in the calendar. Returns the event with its id."""
    first, last = parse_time(start), parse_time(end)
    if last <= first:
        raise ToolFailure("invalid", f"end ({end}) is not after start ({start})")
    key = world.new_key("events", "EVT-")
    event = {
        "event_id": key,
        "title": title,
        "start": format_time(first),
        "end": format_time(last),
        "attendees": list(attendees or []),
    }
    world["events"][key] = event
    return event


def _event(world: World, event_id: str) -> Result:
    event = world["events"].get(event_id.strip())
    if event is None:
        raise ToolFailure("not_found", f"there is no event {event_id!r}")
    return event


@tool(
    "calendar.update_event",
    EVENT,
    {"event_id": "EVT-1002", "changes": {"title": "Design review II"}},
    fails=[{"event_id": "EVT-9", "changes": {"title": "x"}}, {"event_id": "EVT-1002", "changes": {"colour": "red"}}],
    aliases=["update_event", "update_calendar_event", "reschedule_event", "modify_event", "reschedule_meeting"],
    changes=True,
)
def update_event(world: World, event_id: str, changes: dict) -> Result:
    """Change the title, start, end or attendees of a calendar event. Returns the changed event."""
    event = _event(world, event_id)
    unknown = sorted(set(changes) - {"title", "start", "end", "attendees"})
    if unknown or not changes:
        raise ToolFailure(
            "invalid", f"changes may contain title, start, end and attendees; found {unknown or 'nothing'}"
        )
    for name in ("start", "end"):
        if name in changes:
            changes = changes | {name: format_time(parse_time(str(changes[name])))}
    attendees = changes.get("attendees", [])
    if not isinstance(attendees, list) or not all(
        isinstance(value, str) for value in [*attendees, changes.get("title", "")]
    ):
        raise ToolFailure("invalid", "title must be a string, and attendees a list of strings")
    event |= changes
    if event["end"] <= event["start"]:
        raise ToolFailure("invalid", "the event would end before it starts")
    return event


@tool(
    "calendar.delete_event",
    {"deleted": str},
    {"event_id": "EVT-1003"},
    fails=[{"event_id": "EVT-9"}],
    aliases=["delete_event", "cancel_event", "delete_calendar_event", "remove_event", "cancel_meeting"],
    changes=True,
)
def delete_event(world: World, event_id: str) -> Result:
    """Delete an event from the calendar."""
    _event(world, event_id)
    del world["events"][event_id.strip()]
    return {"deleted": event_id.strip()}


@tool(
    "calendar.find_free_slot",
    {"start": str, "end": str},
    {"attendees": ["me@example.com"], "duration_min": 60, "from": "2026-03-16T09:00", "to": "2026-03-17T17:00"},
    fails=[{"attendees": [], "duration_min": 600, "from": "2026-03-16T09:00", "to": "2026-03-16T10:00"}],
    aliases=["find_free_slot", "find_available_time", "check_availability", "find_meeting_time", "get_free_busy"],
)
def find_free_slot(world: World, attendees: list[str], duration_min: int, from_: DateTime, to: DateTime) -> Result:
    """Find the first free time slot of a given duration, between 9:00 and 17:00 on a working day.

    No attendee has an event during this slot. If no attendees are given, the slot overlaps no event of the calendar.
    """
    at, last = parse_time(from_), parse_time(to)
    if not 5 <= duration_min <= 480 or not timedelta() <= last - at <= timedelta(days=92):
        raise ToolFailure("invalid", "duration_min must be from 5 to 480, and the search must cover at most 92 days")
    length, wanted = timedelta(minutes=duration_min), {name.strip().lower() for name in attendees}
    taken = [
        (parse_time(event["start"]), parse_time(event["end"]))
        for event in world["events"].values()
        if not wanted or wanted & {name.lower() for name in event["attendees"]}
    ]
    at += timedelta(minutes=-at.minute % 15)
    while at + length <= last:
        end = at + length
        inside = at.weekday() < 5 and at.hour >= 9 and (end.hour, end.minute) <= (17, 0) and end.date() == at.date()
        if inside and all(end <= start or at >= stop for start, stop in taken):
            return {"start": format_time(at), "end": format_time(end)}
        at += timedelta(minutes=15)
    raise ToolFailure("not_found", "there is no free slot of this duration in this period")


@tool(
    "reminders.create",
    {"reminder_id": str, "text": str, "when": str},
    {"text": "Call Ada", "when": "2026-03-17T08:30"},
    fails=[{"text": "too late", "when": "2020-01-01T00:00"}, {"text": "x", "when": "tomorrow"}],
    aliases=["create_reminder", "set_reminder", "add_reminder", "remind_me", "set_alarm"],
    changes=True,
)
def create_reminder(world: World, text: str, when: DateTime) -> Result:
    """Set a reminder for a time in the future. Returns the reminder with its id."""
    moment = parse_time(when)
    if moment.replace(tzinfo=UTC) <= world.now:
        raise ToolFailure("invalid", f"{when} has passed; it is now {format_time(world.now)}")
    key = world.new_key("reminders", "REM-")
    world["reminders"][key] = {"reminder_id": key, "text": text, "when": format_time(moment)}
    return world["reminders"][key]
