"""Local times of people: changes of clocks, offsets of half hours, names that nobody knows."""

import datetime as dt
import zoneinfo

import pytest

from postroad import errors
from postroad.model.units import times

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")


def at(text: str) -> int:
    return times.parse(text)


def test_a_local_time_is_the_moment_that_the_zone_says() -> None:
    midnight = dt.datetime(2026, 11, 1)  # noqa: DTZ001 - a local time
    assert times.moment_of(midnight, dt.UTC) == at("2026-11-01T00:00:00Z")
    assert times.moment_of(midnight, BERLIN) == at("2026-10-31T23:00:00Z")
    assert times.moment_of(midnight, zoneinfo.ZoneInfo("Asia/Kolkata")) == at("2026-10-31T18:30:00Z")


def test_a_skipped_time_is_after_the_change_and_a_double_one_the_first() -> None:
    skipped, double = dt.datetime(2026, 3, 29, 2, 30), dt.datetime(2026, 10, 25, 2, 30)  # noqa: DTZ001 - local times
    assert times.moment_of(skipped, BERLIN) == at("2026-03-29T01:30:00Z")
    assert times.moment_of(double, BERLIN) == at("2026-10-25T00:30:00Z")


def test_the_ends_of_the_calendar_are_no_errors() -> None:
    first = dt.datetime(1, 1, 1)  # noqa: DTZ001 - a local time
    assert times.moment_of(first, zoneinfo.ZoneInfo("Pacific/Kiritimati")) == 0
    last = dt.datetime(9999, 12, 31, 23, 59)  # noqa: DTZ001 - a local time
    assert times.moment_of(last, zoneinfo.ZoneInfo("America/Los_Angeles")) > at("9999-12-31T23:59:00Z")


def test_a_local_time_says_how_far_it_is_from_utc() -> None:
    summer = times.local(at("2026-07-01T10:00:00Z"), BERLIN)
    assert (summer.hour, times.offset_text(summer)) == (12, "UTC+02:00")
    nepal = times.local(at("2026-07-01T10:00:00Z"), zoneinfo.ZoneInfo("Asia/Kathmandu"))
    assert times.offset_text(nepal) == "UTC+05:45"


def test_names_are_those_of_the_database() -> None:
    assert times.check_time_zone("Asia/Calcutta") == "Asia/Calcutta"  # an old name, which browsers still say
    for name in ("", "Europe/Nowhere", "../etc/passwd", "/etc/localtime", "europe/berlin\0"):
        with pytest.raises(errors.InvalidRequest, match="time_zone: unknown"):
            times.check_time_zone(name)
        assert times.time_zone_named(name) is times.UTC
    assert times.time_zone_named(None) is times.UTC
    assert times.time_zone_choices()[0] == "UTC"
    assert {"Europe/Berlin", "America/New_York"} <= set(times.time_zone_choices())
