"""The range of a chart: the last hours or days, or days of one's choice, divided into buckets in a time zone.

Counts are kept by the hour of UTC, so buckets begin with such an hour. Days begin at midnight of the zone: the days on
which clocks change have 23 or 25 hours. In zones that differ from UTC by half or a quarter of an hour, the hour in
which midnight falls counts for the day that begins in it.
"""

import bisect
import datetime as dt
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from postroad import errors
from postroad.model.units import times

# Days of one's choice, today included: as many again are compared, and counts are kept for both.
MAX_DAYS: Final = 92


class Period(StrEnum):
    """A range that ends now."""

    DAY = "24h"
    WEEK = "7d"
    MONTH = "30d"
    QUARTER = "90d"


class Step(StrEnum):
    """How long a bucket is."""

    HOUR = "hour"
    QUARTER_DAY = "quarter day"
    DAY = "day"


class Bucketing(msgspec.Struct, frozen=True):
    """How a period is divided: a number of buckets of some hours each."""

    buckets: int
    step: Step


SHAPES: Final = {
    Period.DAY: Bucketing(24, Step.HOUR),
    Period.WEEK: Bucketing(28, Step.QUARTER_DAY),
    Period.MONTH: Bucketing(30, Step.DAY),
    Period.QUARTER: Bucketing(90, Step.DAY),
}
HOURS: Final = {Step.HOUR: 1, Step.QUARTER_DAY: 6, Step.DAY: 24}
# Chosen days have about as many buckets as periods of that length.
_LAST_HOURLY, _LAST_QUARTERLY = 2, 13


class Range(msgspec.Struct, frozen=True):
    """Buckets between `bounds`, which are hours since 1970; `days` are the dates of daily buckets.

    `compared_until` is the end of the range before, which is as long and ends as far before its own end as now is.
    """

    step: Step
    bounds: tuple[int, ...]
    compared_until: int
    days: tuple[dt.date, ...] = ()

    @property
    def from_hour(self) -> int:
        """The first hour."""
        return self.bounds[0]

    @property
    def until_hour(self) -> int:
        """The hour after the last one."""
        return self.bounds[-1]

    @property
    def compared_from(self) -> int:
        """The first hour of the range before."""
        return 2 * self.from_hour - self.until_hour

    def place_of(self, hour: int) -> int:
        """The number of the bucket that has this hour."""
        return bisect.bisect_right(self.bounds, hour) - 1

    @property
    def starts(self) -> list[int]:
        """When each bucket begins, in microseconds."""
        return [hour * times.HOUR for hour in self.bounds[:-1]]


def of_period(period: Period, *, now: int, zone: dt.tzinfo = dt.UTC) -> Range:
    """The range of a period; its last bucket is the current one."""
    shape = SHAPES[period]
    hour = now // times.HOUR
    if shape.step is Step.HOUR:
        return _range(shape.step, range(hour + 1 - shape.buckets, hour + 2), now=now)
    today = times.local(now, zone).date()
    # Tomorrow may have begun already, with the hour in which midnight falls.
    dates = _dates(today - dt.timedelta(days=shape.buckets * HOURS[shape.step] // 24), today + dt.timedelta(days=1))
    bounds = _bounds(dates, shape.step, zone)
    # The current bucket is the last one that has begun.
    end = next(place for place, bound in enumerate(bounds) if bound > hour)
    days = dates[end - shape.buckets : end] if shape.step is Step.DAY else ()
    return _range(shape.step, bounds[end - shape.buckets : end + 1], now=now, days=days)


def of_days(first: dt.date, last: dt.date, *, now: int, zone: dt.tzinfo) -> Range:
    """The range of chosen days, both included; InvalidRequest says what is wrong with them."""
    today = times.local(now, zone).date()
    if first > today:
        raise errors.InvalidRequest("from: must not be in the future")
    if first > last:
        raise errors.InvalidRequest("from: must not be after the last day")
    if (today - first).days >= 2 * MAX_DAYS:
        raise errors.InvalidRequest(f"from: must be one of the last {2 * MAX_DAYS} days")
    count = (last - first).days + 1
    if count > MAX_DAYS:
        raise errors.InvalidRequest(f"from: choose at most {MAX_DAYS} days")
    dates = _dates(first, last)
    if count <= _LAST_HOURLY:
        whole = _bounds(dates, Step.DAY, zone)
        return _range(Step.HOUR, range(whole[0], whole[-1] + 1), now=now)
    step = Step.QUARTER_DAY if count <= _LAST_QUARTERLY else Step.DAY
    return _range(step, _bounds(dates, step, zone), now=now, days=dates if step is Step.DAY else ())


def _range(step: Step, bounds: Sequence[int], *, now: int, days: tuple[dt.date, ...] = ()) -> Range:
    # The current bucket is incomplete, so the range before is cut at the same point, to the nearest hour.
    reached = min(bounds[-1], (now + times.HOUR // 2) // times.HOUR)
    return Range(step, tuple(bounds), reached - (bounds[-1] - bounds[0]), days)


def _bounds(dates: Sequence[dt.date], step: Step, zone: dt.tzinfo) -> list[int]:
    """The hours in which the buckets of these days begin, and the one after the last day."""
    clock_times = [dt.time(hour) for hour in range(0, 24, HOURS[step])]
    written = [dt.datetime.combine(day, at) for day in dates for at in clock_times]
    written.append(dt.datetime.combine(dates[-1] + dt.timedelta(days=1), dt.time()))
    return [times.moment_of(moment, zone) // times.HOUR for moment in written]


def _dates(first: dt.date, last: dt.date) -> tuple[dt.date, ...]:
    return tuple(first + dt.timedelta(days=number) for number in range((last - first).days + 1))
