"""Ranges of charts: buckets of hours, quarters of days and days, in any zone, and the range to compare with."""

import datetime as dt
import zoneinfo

import pytest

from postroad import errors
from postroad.model.units import chart_ranges, times
from postroad.model.units.chart_ranges import Period, Step

BERLIN, KOLKATA = zoneinfo.ZoneInfo("Europe/Berlin"), zoneinfo.ZoneInfo("Asia/Kolkata")
NOW = times.parse("2027-01-15T08:20:00Z")


def written(hours: tuple[int, ...]) -> list[str]:
    return [times.to_wire(hour * times.HOUR)[:16] for hour in hours]


@pytest.mark.parametrize(
    "period, buckets, first, last, end",
    [
        (Period.DAY, 24, "2027-01-14T09:00", "2027-01-15T08:00", "2027-01-15T09:00"),
        (Period.WEEK, 28, "2027-01-08T12:00", "2027-01-15T06:00", "2027-01-15T12:00"),
        (Period.MONTH, 30, "2026-12-17T00:00", "2027-01-15T00:00", "2027-01-16T00:00"),
        (Period.QUARTER, 90, "2026-10-18T00:00", "2027-01-15T00:00", "2027-01-16T00:00"),
    ],
)
def test_a_period_ends_with_the_current_bucket(period: Period, buckets: int, first: str, last: str, end: str) -> None:
    found = chart_ranges.of_period(period, now=NOW)
    bounds = written(found.bounds)
    assert len(bounds) == buckets + 1
    assert (bounds[0], bounds[-2], bounds[-1]) == (first, last, end)
    assert len(found.days) == (buckets if found.step is Step.DAY else 0)


def test_days_begin_at_midnight_of_the_zone_also_before_midnight_in_utc() -> None:
    late = times.parse("2027-01-15T23:30:00Z")  # 00:30 of the 16th in Berlin
    found = chart_ranges.of_period(Period.MONTH, now=late, zone=BERLIN)
    assert written(found.bounds)[-2:] == ["2027-01-15T23:00", "2027-01-16T23:00"]
    assert (found.days[0], found.days[-1]) == (dt.date(2026, 12, 18), dt.date(2027, 1, 16))
    west = chart_ranges.of_period(Period.WEEK, now=NOW, zone=zoneinfo.ZoneInfo("America/Los_Angeles"))
    assert written(west.bounds)[-2:] == ["2027-01-15T08:00", "2027-01-15T14:00"]  # 00:00 and 06:00 there


@pytest.mark.parametrize("change, hours", [(dt.date(2026, 3, 29), 23), (dt.date(2026, 10, 25), 25)])
def test_the_days_on_which_clocks_change_are_shorter_or_longer(change: dt.date, hours: int) -> None:
    now = times.parse(f"{change + dt.timedelta(days=30)}T12:00:00Z")
    chosen = chart_ranges.of_days(change - dt.timedelta(days=7), change + dt.timedelta(days=7), now=now, zone=BERLIN)
    lengths = [end - start for start, end in zip(chosen.bounds, chosen.bounds[1:], strict=False)]
    assert lengths == [*[24] * 7, hours, *[24] * 7]
    assert chosen.days[7] == change
    alone = chart_ranges.of_days(change, change, now=now, zone=BERLIN)
    assert (alone.step, len(alone.starts)) == (Step.HOUR, hours)
    week = chart_ranges.of_days(change, change + dt.timedelta(days=6), now=now, zone=BERLIN)
    quarters = [end - start for start, end in zip(week.bounds, week.bounds[1:], strict=False)]
    assert quarters == [hours - 18, *[6] * 27]


def test_an_hour_in_which_midnight_falls_counts_for_the_day_that_begins() -> None:
    found = chart_ranges.of_period(Period.MONTH, now=NOW, zone=KOLKATA)
    # 00:00 in Kolkata is 18:30 in UTC.
    assert written(found.bounds)[-2:] == ["2027-01-14T18:00", "2027-01-15T18:00"]
    assert found.days[-1] == dt.date(2027, 1, 15)
    before_midnight = times.parse("2027-01-15T18:10:00Z")
    found = chart_ranges.of_period(Period.MONTH, now=before_midnight, zone=KOLKATA)
    assert written(found.bounds)[-2:] == ["2027-01-15T18:00", "2027-01-16T18:00"]
    assert (len(found.days), found.days[-1]) == (30, dt.date(2027, 1, 16))


def test_the_range_before_is_as_long_and_cut_where_this_one_is() -> None:
    found = chart_ranges.of_period(Period.MONTH, now=NOW)
    assert written((found.compared_from, found.compared_until)) == ["2026-11-17T00:00", "2026-12-16T08:00"]
    later = chart_ranges.of_period(Period.MONTH, now=NOW + times.HOUR // 6)
    assert written((later.compared_until,)) == ["2026-12-16T09:00"]
    past = chart_ranges.of_days(dt.date(2026, 11, 3), dt.date(2026, 11, 4), now=NOW, zone=dt.UTC)
    assert written((past.compared_from, past.compared_until)) == ["2026-11-01T00:00", "2026-11-03T00:00"]


def test_the_longer_the_range_the_longer_the_buckets() -> None:
    first = dt.date(2026, 11, 1)
    steps = {
        count: chart_ranges.of_days(first, first + dt.timedelta(days=count - 1), now=NOW, zone=BERLIN).step
        for count in (1, 2, 3, 13, 14, 92)
    }
    assert list(steps.values()) == [Step.HOUR, Step.HOUR, Step.QUARTER_DAY, Step.QUARTER_DAY, Step.DAY, Step.DAY]


@pytest.mark.parametrize(
    "first, last, problem",
    [
        ((2027, 1, 2), (2027, 1, 1), "from: must not be after the last day"),
        ((2027, 1, 16), (2027, 1, 16), "from: must not be in the future"),
        ((2026, 10, 1), (2027, 1, 1), "from: choose at most 92 days"),
        ((2026, 7, 1), (2026, 7, 2), "from: must be one of the last 184 days"),
    ],
)
def test_impossible_days_are_refused(first: tuple[int, int, int], last: tuple[int, int, int], problem: str) -> None:
    with pytest.raises(errors.InvalidRequest, match=problem):
        chart_ranges.of_days(dt.date(*first), dt.date(*last), now=NOW, zone=dt.UTC)
