"""Times on the wire are RFC 3339 in UTC with milliseconds, and every RFC 3339 time can be read."""

import contextlib
import datetime as dt
import zoneinfo
from dataclasses import dataclass

import hypothesis
import pytest
from hypothesis import strategies

from postroad import errors
from postroad.model.units import times

SECOND = 1_000_000


@pytest.mark.parametrize(
    "microseconds, text",
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1, "1970-01-01T00:00:00.000Z"),
        (999, "1970-01-01T00:00:00.000Z"),
        (1_000, "1970-01-01T00:00:00.001Z"),
        (1_800_000_000 * SECOND + 123_999, "2027-01-15T08:00:00.123Z"),
        (253_402_300_799 * SECOND + 999_999, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_a_time_is_written_in_utc_with_milliseconds(microseconds: int, text: str) -> None:
    assert times.to_wire(microseconds) == text


def test_a_time_that_has_not_come_is_none() -> None:
    assert times.optional_to_wire(None) is None
    assert times.optional_to_wire(0) == "1970-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("1970-01-01T00:00:01Z", 1),
        ("1970-01-01t00:00:01z", 1),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1969-12-31T23:00:10-01:00", 10),
        ("1970-01-01T00:00:00.5Z", 0.5),
        ("1970-01-01T00:00:00.123456789012Z", 0.123456),
        ("1990-12-31T23:59:60Z", 662_688_000),
        ("1990-12-31T15:59:60-08:00", 662_688_000),
    ],
)
def test_what_rfc_3339_allows_is_read(text: str, seconds: float) -> None:
    assert times.parse(text) == int(seconds * SECOND)


@pytest.mark.parametrize("text", ["0000-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "1969-12-31T23:59:59Z"])
def test_a_time_before_1970_is_the_beginning(text: str) -> None:
    assert times.parse(text) == 0


def test_the_last_time_of_the_calendar_is_read_even_when_its_offset_leads_beyond() -> None:
    assert times.parse("9999-12-31T23:59:59-23:59") > times.parse("9999-12-31T23:59:59Z")


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59-23:59", "9999-12-31T23:59:60Z"])
def test_what_is_read_can_be_written_again(text: str) -> None:
    assert times.to_wire(times.parse(text)) == "9999-12-31T23:59:59.999Z"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-01-31",
        "2026-01-31T12:00:00",
        "2026-01-31 12:00:00Z",
        "2026-01-31T12:00Z",
        "2026-1-31T12:00:00Z",
        "2026-02-30T12:00:00Z",
        "2026-13-01T12:00:00Z",
        "2026-01-31T24:00:00Z",
        "2026-01-31T12:60:00Z",
        "2026-01-31T12:00:61Z",
        "0000-02-30T00:00:00Z",
        "2026-01-31T12:00:00.Z",
        "2026-01-31T12:00:00+24:00",
        "2026-01-31T12:00:00+02:60",
        "2026-01-31T12:00:00 02:00",
        "2026-01-31T12:00:00Z\n",
        "2026-01-31T12:00:00Z\0",
        "٢٠٢٦-01-31T12:00:00Z",
        "2026-01-31T12:00:00." + "1" * 10_000 + "Z",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"time|day|offset"):
        times.parse(text)


@hypothesis.given(strategies.datetimes(min_value=dt.datetime(1970, 1, 1)))  # noqa: DTZ001 - as UTC below
def test_reading_undoes_writing_up_to_a_millisecond(moment: dt.datetime) -> None:
    microseconds = times.parse(moment.isoformat(timespec="microseconds") + "Z")
    assert times.parse(times.to_wire(microseconds)) == microseconds // 1000 * 1000


@hypothesis.given(strategies.text(max_size=40))
def test_no_text_is_more_than_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert times.parse(text) >= 0


# Spans of time and places in a row, as people say them.


@pytest.mark.parametrize(
    "seconds, text",
    [
        (0, "0 s"),
        (0.9, "0 s"),
        (119, "119 s"),
        (120, "2 min"),
        (7_199, "119 min"),
        (7_200, "2 h"),
        (172_799, "47 h"),
        (172_800, "2 d"),
        (86_400 * 400, "400 d"),
        (-5, "0 s"),
    ],
)
def test_a_span_is_reported_in_one_unit_rounded_down(seconds: float, text: str) -> None:
    assert times.format_duration(int(seconds * SECOND)) == text


@pytest.mark.parametrize("seconds, text", [(240, "in 4 min"), (0.5, "now"), (-0.5, "now"), (-7_200, "2 h ago")])
def test_a_time_is_ahead_now_or_past(seconds: float, text: str) -> None:
    assert times.relative_time(int((1_000_000 + seconds) * SECOND), now=1_000_000 * SECOND) == text


@pytest.mark.parametrize(
    "number, text",
    [
        (1, "1st"),
        (2, "2nd"),
        (3, "3rd"),
        (4, "4th"),
        (11, "11th"),
        (12, "12th"),
        (13, "13th"),
        (21, "21st"),
        (112, "112th"),
    ],
)
def test_a_place_in_a_row_has_its_ending(number: int, text: str) -> None:
    assert times.ordinal(number) == text


# Local times of people.


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


# The public form of a record has the named fields in order, and its times as text.


@dataclass(frozen=True, slots=True)
class Record:
    id: str
    secret: str
    warm: int
    created_at: int
    failing_since: int | None


RECORD = Record("dom_1", "hidden", 1, 1_769_860_800_000_000, None)


def test_only_the_named_fields_are_shown_in_their_order() -> None:
    shown = times.wire_fields(RECORD, ("created_at", "id", "failing_since"))
    assert list(shown.items()) == [
        ("created_at", "2026-01-31T12:00:00.000Z"),
        ("id", "dom_1"),
        ("failing_since", None),
    ]


def test_a_changed_field_stands_at_its_place_and_may_be_missing_from_the_record() -> None:
    shown = times.wire_fields(RECORD, ("id", "warm", "reason"), warm=True, reason="new")
    assert list(shown.items()) == [("id", "dom_1"), ("warm", True), ("reason", "new")]


def test_a_field_may_have_any_name() -> None:
    assert times.wire_fields(RECORD, ("names", "record"), names=["a.example"], record=1) == {
        "names": ["a.example"],
        "record": 1,
    }


# Leases by a wall clock that is set forwards, backwards, or only runs.


LEASE = 60 * times.SECOND
NOON = 1_800_000_000 * times.SECOND
HOUR = times.HOUR


def reading(clock: times.LeaseClock, seconds: float, *, jump: int = 0) -> int:
    """What is decided so many seconds after noon, with a clock that jumped; relative to noon."""
    return clock.expired_before(now=NOON + round(seconds * times.SECOND) + jump, monotonic=1000 + seconds) - NOON


def test_a_clock_that_only_runs_is_believed() -> None:
    clock = times.LeaseClock(LEASE)
    assert [reading(clock, seconds) for seconds in (0, 1, 100, 100_000)] == [
        seconds * times.SECOND for seconds in (0, 1, 100, 100_000)
    ]


def test_a_jump_forwards_is_believed_after_a_lease_and_time_goes_on_meanwhile() -> None:
    clock = times.LeaseClock(LEASE)
    reading(clock, 0)
    assert reading(clock, 1, jump=HOUR) == 1 * times.SECOND
    assert reading(clock, 60.9, jump=HOUR) == round(60.9 * times.SECOND)
    assert reading(clock, 61, jump=HOUR) == 61 * times.SECOND + HOUR
    assert reading(clock, 62, jump=HOUR) == 62 * times.SECOND + HOUR


def test_a_second_jump_does_not_begin_the_wait_anew() -> None:
    clock = times.LeaseClock(LEASE)
    reading(clock, 0)
    reading(clock, 1, jump=HOUR)
    assert reading(clock, 30, jump=2 * HOUR) == 30 * times.SECOND
    assert reading(clock, 61, jump=2 * HOUR) == 61 * times.SECOND + 2 * HOUR


def test_a_jump_backwards_is_believed_at_once_and_its_correction_waited_out() -> None:
    clock = times.LeaseClock(LEASE)
    reading(clock, 0)
    assert reading(clock, 1, jump=-HOUR) == 1 * times.SECOND - HOUR
    assert reading(clock, 2) == 2 * times.SECOND - HOUR
    assert reading(clock, 62) == 62 * times.SECOND


def test_a_clock_that_is_mended_soon_was_never_believed() -> None:
    clock = times.LeaseClock(LEASE)
    reading(clock, 0)
    reading(clock, 1, jump=HOUR)
    assert reading(clock, 2) == 2 * times.SECOND
    # The next jump is a new one.
    assert reading(clock, 61, jump=HOUR) == 61 * times.SECOND


def test_what_a_clock_gains_little_by_little_is_believed() -> None:
    clock = times.LeaseClock(LEASE)
    for step in range(10):
        assert reading(clock, step, jump=step * times.SECOND) == 2 * step * times.SECOND


@pytest.mark.parametrize(
    "text, time",
    [
        ("Fri, 15 Jan 2027 09:00:00 +0100", "2027-01-15T08:00:00.000Z"),
        ("15 Jan 2027 08:00 -0000", "2027-01-15T08:00:00.000Z"),
        ("Fri, 15 Jan 2027 08:00:00", "2027-01-15T08:00:00.000Z"),
        ("Thu, 01 Jan 1970 00:00:00 +0000", "1970-01-01T00:00:00.000Z"),
        ("Wed, 31 Dec 1969 23:59:59 +0000", None),
        ("Fri, 31 Dec 9999 23:59:59 -0100", None),
        ("Fri, 32 Jan 2027 08:00:00 +0000", None),
        ("Fri, 15 Jan 99999999999 08:00:00 +0000", None),
        ("soon", None),
        ("", None),
    ],
)
def test_the_date_of_a_mail_is_read(text: str, time: str | None) -> None:
    assert times.optional_to_wire(times.parse_mail_date(text)) == time


@hypothesis.given(strategies.text(max_size=60) | strategies.text("0123456789 :+-,Janri", max_size=40))
def test_any_date_is_read_or_none(text: str) -> None:
    found = times.parse_mail_date(text)
    assert found is None or times.to_wire(found)
