"""The time zone of a person, by its name in the IANA database: for what pages show and what people type.

The system's copy of the database is used, or that of the package `tzdata` where the system has none. A local time that
a change of clocks skips is moved by the length of the change; one that occurs twice is its first occurrence.
"""

import datetime as dt
import functools
import zoneinfo
from typing import Final

from postroad import errors

UTC: Final = zoneinfo.ZoneInfo("UTC")
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)


@functools.cache
def _known() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())


@functools.cache
def choices() -> tuple[str, ...]:
    """The names to choose from: UTC, and those of places. Others, such as EST5EDT, are for old systems."""
    return "UTC", *sorted(name for name in _known() if "/" in name and not name.startswith("Etc/"))


def check(name: str) -> str:
    """The name, or InvalidRequest."""
    if name not in _known():
        raise errors.InvalidRequest("time_zone: unknown; give a name of the IANA database, such as Europe/Berlin")
    return name


def named(name: str | None) -> zoneinfo.ZoneInfo:
    """The zone with this name. UTC when none was chosen, or when this host's database does not have it."""
    return zoneinfo.ZoneInfo(name) if name in _known() else UTC


def local(moment: int, zone: dt.tzinfo) -> dt.datetime:
    """A time as a clock in the zone shows it."""
    return (_EPOCH + dt.timedelta(microseconds=moment)).astimezone(zone)


def moment_of(written: dt.datetime, zone: dt.tzinfo) -> int:
    """The time of a local time without a zone; a time before 1970 becomes 1970."""
    return max(0, (written.replace(tzinfo=zone) - _EPOCH) // _MICROSECOND)


def offset_text(moment: dt.datetime) -> str:
    """How far a local time is from UTC: `UTC+01:00`."""
    return f"UTC{moment.isoformat(timespec='seconds')[19:]}"
