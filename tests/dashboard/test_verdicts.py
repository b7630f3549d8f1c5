"""What follows from counts: the rate of today beside that of yesterday, and providers that defer."""

import zoneinfo

import pytest

from postroad.dashboard.framework import verdicts
from postroad.model.units import times
from postroad.storage.mail import mail_counts

UTC = times.UTC
# 2027-01-15 08:00 in UTC.
NOW = 1_800_000_000_000_000
HOUR = 500_000
FIRST = verdicts.first_hour(NOW, UTC)


def row(
    hours_ago: int, provider: str = "google", *, delivered: int = 0, bounced: int = 0, deferred: int = 0
) -> mail_counts.BucketTotal:
    return mail_counts.BucketTotal(HOUR - hours_ago - FIRST, provider, 0, 0, delivered, bounced, 0, deferred)


def totals(*rows: mail_counts.BucketTotal) -> mail_counts.HourlyTotals:
    return mail_counts.HourlyTotals(FIRST, rows)


def rate(*rows: mail_counts.BucketTotal, zone: zoneinfo.ZoneInfo = UTC) -> verdicts.Rate:
    return verdicts.rate_of(totals(*rows), now=NOW, zone=zone)


def deferring(*rows: mail_counts.BucketTotal) -> list[tuple[str, int | None]]:
    return [(each.title, (NOW - each.since) // times.HOUR) for each in verdicts.deferring(totals(*rows), now=NOW)]


def test_today_begins_at_midnight_of_the_reader() -> None:
    assert times.to_wire(FIRST * times.HOUR) == "2027-01-14T00:00:00.000Z"
    before_midnight = row(9, delivered=1, bounced=1)
    assert rate(before_midnight, row(8, "yahoo", delivered=3)).words == "100% delivered today (yesterday 50.0%)"
    # 22:00 in Kiritimati, where it was 13:00 nine hours ago.
    there = rate(before_midnight, row(8, "yahoo", delivered=3), zone=zoneinfo.ZoneInfo("Pacific/Kiritimati"))
    assert there.words == "80.0% delivered today"


@pytest.mark.parametrize(
    "rows, words",
    [
        ([], "no results yet today"),
        ([row(9, delivered=1)], "no results yet today (yesterday 100%)"),
        ([row(0, delivered=999, bounced=1)], "99.9% delivered today"),
        ([row(0, bounced=1), row(9, delivered=1)], "0% delivered today (yesterday 100%)"),
    ],
)
def test_a_day_without_results_has_no_rate(rows: list[mail_counts.BucketTotal], words: str) -> None:
    assert rate(*rows).words == words


@pytest.mark.parametrize(
    "today, yesterday, alerts",
    [
        (row(0, delivered=90, bounced=10), row(9, delivered=95, bounced=5), 1),
        (row(0, delivered=91, bounced=9), row(9, delivered=95, bounced=5), 0),
        (row(0, delivered=9, bounced=10), row(9, delivered=100), 0),
        (row(0, bounced=100), row(9, delivered=19), 0),
    ],
)
def test_five_points_less_than_yesterday_are_a_fall(
    today: mail_counts.BucketTotal, yesterday: mail_counts.BucketTotal, alerts: int
) -> None:
    found = rate(today, yesterday)
    assert len(list(verdicts.fallen(found, "/failures"))) == alerts


def test_a_provider_defers_since_the_first_hour_of_a_row() -> None:
    normal = row(4, delivered=95, deferred=5)
    high = [row(3, delivered=10, deferred=10), row(1, delivered=30, deferred=30)]
    assert deferring(normal, *high) == [("Google is deferring 50%", 3)]
    # A few attempts decide nothing: the hour has just begun.
    assert deferring(normal, *high, row(0, delivered=4)) == [("Google is deferring 50%", 3)]
    assert deferring(normal, *high, row(0, delivered=5)) == []


def test_what_is_over_small_or_of_many_hosts_is_not_deferring() -> None:
    assert deferring(row(2, deferred=100)) == []
    assert deferring(row(0, deferred=19)) == []
    assert deferring(row(0, "others", deferred=100)) == []
    assert deferring(row(0, delivered=76, deferred=24)) == []
    assert deferring(row(0, delivered=75, deferred=25)) == [("Google is deferring 25%", 0)]
