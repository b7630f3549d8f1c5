"""Dates and times that people type into forms: in their time zone, as the date fields of browsers write them."""

import datetime as dt
import zoneinfo

from postroad import errors
from postroad.model import time_zones


def start_of_day(field: str, text: str | None, zone: zoneinfo.ZoneInfo) -> int:
    """When a day begins; InvalidRequest says what is wrong."""
    return time_zones.moment_of(dt.datetime.combine(date(field, text), dt.time()), zone)


def end_of_day(field: str, text: str | None, zone: zoneinfo.ZoneInfo) -> int:
    """When the next day begins."""
    try:
        following = date(field, text) + dt.timedelta(days=1)
    except OverflowError:
        raise errors.InvalidRequest(f"{field}: this date is too late") from None
    return time_zones.moment_of(dt.datetime.combine(following, dt.time()), zone)


def moment(field: str, text: str, zone: zoneinfo.ZoneInfo) -> int:
    """The time of `2026-01-31T09:30`; browsers leave out seconds that are zero."""
    try:
        written = dt.datetime.fromisoformat(text)
    except ValueError:
        written = None
    if written is None or written.tzinfo is not None or "T" not in text:
        raise errors.InvalidRequest(f"{field}: write the time as 2026-01-31T09:30, in {zone.key}")
    return time_zones.moment_of(written, zone)


def written(moment: int, zone: zoneinfo.ZoneInfo) -> str:
    """A time to the minute, as a date field takes it."""
    return time_zones.local(moment, zone).strftime("%Y-%m-%dT%H:%M")


def date(field: str, text: str | None) -> dt.date:
    """A day."""
    if not text:
        raise errors.InvalidRequest(f"{field}: choose a day")
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise errors.InvalidRequest(f"{field}: write the date as 2026-01-31") from None
