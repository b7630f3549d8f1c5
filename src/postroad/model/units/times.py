"""Times: microseconds since 1970 inside, RFC 3339 in UTC in the API, a time zone of the IANA database on pages."""

import datetime as dt
import email.utils
import functools
import re
import zoneinfo
from collections.abc import Iterable
from typing import Annotated, Any, Final

import msgspec

from postroad import errors

# Microseconds: the internal unit of every time and duration.
SECOND: Final = 1_000_000
HOUR: Final = 3600 * SECOND
DAY: Final = 24 * HOUR

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_SHAPE: Final = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,30}))?(?:[Zz]|([+-])(\d{2}):(\d{2}))", re.ASCII
)
_LEAP_SECOND: Final = 60
# The end of the calendar, beyond which an offset can lead: a later time could be stored, but never written again.
_LAST: Final = (dt.datetime.max.replace(tzinfo=dt.UTC) - _EPOCH) // _MICROSECOND

# For schemas; `format` is enough for every client generator.
WireTime = Annotated[
    str,
    msgspec.Meta(
        description="A time in UTC, RFC 3339 with milliseconds.",
        examples=["2026-01-31T12:00:00.000Z"],
        extra_json_schema={"format": "date-time"},
    ),
]


def day_of(time: int) -> int:
    """The UTC day of a time, in days since 1970."""
    return time // DAY


def to_wire(microseconds: int) -> str:
    """The time as the API shows it."""
    moment = _EPOCH + dt.timedelta(microseconds=microseconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{microseconds % SECOND // 1000:03d}Z"


def to_minute(microseconds: int) -> str:
    """The minute, for people."""
    return f"{_EPOCH + dt.timedelta(microseconds=microseconds):%Y-%m-%d %H:%M} UTC"


def optional_to_wire(microseconds: int | None) -> str | None:
    """The same for a time that may be missing."""
    return None if microseconds is None else to_wire(microseconds)


def given_to_wire(microseconds: int | None) -> str | msgspec.UnsetType:
    """The same for a member that is left out where there is no time."""
    return msgspec.UNSET if microseconds is None else to_wire(microseconds)


def parse(text: str) -> int:
    """Microseconds since 1970 of an RFC 3339 time; `ValueError` says what is wrong."""
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise ValueError(
            "not an RFC 3339 time with a time zone, such as 2026-01-31T12:00:00Z; write '+' in a URL as %2B"
        )
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    fraction = int((match[7] or "")[:6].ljust(6, "0"))
    leap = second == _LEAP_SECOND
    # Python's calendar begins with year 1; a time before 1970 is clamped anyway, but has to be valid.
    calendar_year = year or 2000
    try:
        moment = dt.datetime(calendar_year, month, day, hour, minute, second - leap, tzinfo=dt.UTC)
    except ValueError:
        raise ValueError("no such date or time") from None
    if not year:
        return 0
    microseconds = (moment - _EPOCH) // _MICROSECOND + leap * SECOND + fraction - _offset(match) * SECOND
    return min(max(0, microseconds), _LAST)


def parse_mail_date(text: str) -> int | None:
    """Microseconds since 1970 of a Date field (RFC 5322 section 3.3); None if it is none. Without a zone it is UTC."""
    try:
        moment = email.utils.parsedate_to_datetime(text)
        microseconds = (moment.replace(tzinfo=moment.tzinfo or dt.UTC) - _EPOCH) // _MICROSECOND
    except (ValueError, OverflowError):
        return None
    return microseconds if 0 <= microseconds <= _LAST else None


def _offset(match: re.Match[str]) -> int:
    """How many seconds the written time is ahead of UTC."""
    if match[8] is None:
        return 0
    hours, minutes = int(match[9]), int(match[10])
    if hours > 23 or minutes > 59:  # noqa: PLR2004 - RFC 3339 section 5.6, time-hour and time-minute
        raise ValueError("the offset must be at most 23:59")
    seconds = hours * 3600 + minutes * 60
    return seconds if match[8] == "+" else -seconds


# The time zone of a person, by its name in the IANA database: for what pages show and what people type.
#
# The system's copy of the database is used, or that of the package `tzdata` where the system has none. A local time
# that a change of clocks skips is moved by the length of the change; one that occurs twice is its first occurrence.

UTC: Final = zoneinfo.ZoneInfo("UTC")


@functools.cache
def _known_time_zone() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())


@functools.cache
def time_zone_choices() -> tuple[str, ...]:
    """The names to choose from: UTC, and those of places. Others, such as EST5EDT, are for old systems."""
    return "UTC", *sorted(name for name in _known_time_zone() if "/" in name and not name.startswith("Etc/"))


def check_time_zone(name: str) -> str:
    """The name, or InvalidRequest."""
    if name not in _known_time_zone():
        raise errors.InvalidRequest("time_zone: unknown; give a name of the IANA database, such as Europe/Berlin")
    return name


def time_zone_named(name: str | None) -> zoneinfo.ZoneInfo:
    """The zone with this name. UTC when none was chosen, or when this host's database does not have it."""
    return zoneinfo.ZoneInfo(name) if name in _known_time_zone() else UTC


def local(moment: int, zone: dt.tzinfo) -> dt.datetime:
    """A time as a clock in the zone shows it."""
    return (_EPOCH + dt.timedelta(microseconds=moment)).astimezone(zone)


def moment_of(written: dt.datetime, zone: dt.tzinfo) -> int:
    """The time of a local time without a zone; a time before 1970 becomes 1970."""
    return max(0, (written.replace(tzinfo=zone) - _EPOCH) // _MICROSECOND)


def offset_text(moment: dt.datetime) -> str:
    """How far a local time is from UTC: `UTC+01:00`."""
    return f"UTC{moment.isoformat(timespec='seconds')[19:]}"


# Each unit is used up to twice the next one: "90 min" is more precise than "1 h".
_UNITS: Final = ((1, "s", 120), (60, "min", 7_200), (3_600, "h", 172_800), (86_400, "d", 0))
_TEENS: Final = (11, 12, 13)
_ENDINGS: Final = {1: "st", 2: "nd", 3: "rd"}


def format_duration(microseconds: int) -> str:
    """A duration in one unit, rounded down: `45 s`, `4 min`, `3 h`, `2 d`."""
    seconds = max(0, microseconds) // SECOND
    for size, name, below in _UNITS:
        if seconds < below or not below:
            return f"{seconds // size} {name}"
    raise AssertionError("the last unit takes everything")


def relative_time(moment: int, *, now: int) -> str:
    """A time relative to now: `in 4 min`, `now`, `2 h ago`."""
    if abs(moment - now) < SECOND:
        return "now"
    return f"in {format_duration(moment - now)}" if moment > now else f"{format_duration(now - moment)} ago"


def ordinal(number: int) -> str:
    """An ordinal number: `1st`, `2nd`, `11th`."""
    ending = "th" if number % 100 in _TEENS else _ENDINGS.get(number % 10, "th")
    return f"{number}{ending}"


# When leases of other workers expire, by a wall clock that may be set forward.
#
# After a jump of an hour every lease looks expired, even those of live workers, which renew within a fraction of a
# lease. So a jump is trusted only after a whole lease has passed on the monotonic clock: by then only dead workers have
# not renewed. Until then time continues from before the jump. A clock that is set back is trusted at once: leases only
# last longer. All times are microseconds.

# What a wall clock may gain unnoticed: less than the renewal interval.
LEASE_TOLERANCE: Final = 2 * SECOND


class LeaseClock:
    """Decides when leases of this length have expired."""

    def __init__(self, lease: int) -> None:
        self._lease = lease
        # How far the wall clock is ahead of the monotonic one, as far as it is trusted.
        self._ahead: int | None = None
        self._jumped_at: int | None = None

    def expired_before(self, *, now: int, monotonic: float) -> int:
        """Leases that end by this time have expired. `monotonic` is in seconds."""
        since = round(monotonic * SECOND)
        ahead = now - since
        if self._ahead is None or ahead <= self._ahead + LEASE_TOLERANCE:
            self._ahead, self._jumped_at = ahead, None
            return now
        if self._jumped_at is None:
            self._jumped_at = since
        if since - self._jumped_at >= self._lease:
            self._ahead, self._jumped_at = ahead, None
            return now
        return since + self._ahead


def wire_fields(record: object, names: Iterable[str], /, **changed: Any) -> dict[str, Any]:
    """The named fields, in this order; `changed` has those that differ from the record's own, whatever their names."""
    return {name: changed[name] if name in changed else _public(name, getattr(record, name)) for name in names}


def _public(name: str, value: Any) -> Any:  # noqa: ANN401 - any field
    return optional_to_wire(value) if name.endswith(("_at", "_since")) else value
