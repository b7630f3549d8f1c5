"""Times in the API: RFC 3339 in UTC, with milliseconds and `Z`. Internally a time is microseconds since 1970.

`parse` reads what RFC 3339 section 5.6 allows, including any offset, any number of fractional digits and leap seconds.
A time before 1970 becomes 1970.
"""

import datetime as dt
import re
from typing import Annotated, Final

import msgspec

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


def _offset(match: re.Match[str]) -> int:
    """How many seconds the written time is ahead of UTC."""
    if match[8] is None:
        return 0
    hours, minutes = int(match[9]), int(match[10])
    if hours > 23 or minutes > 59:  # noqa: PLR2004 - RFC 3339 section 5.6, time-hour and time-minute
        raise ValueError("the offset must be at most 23:59")
    seconds = hours * 3600 + minutes * 60
    return seconds if match[8] == "+" else -seconds
