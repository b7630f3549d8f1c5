"""Times on the wire are RFC 3339 in UTC with milliseconds, and every RFC 3339 time can be read."""

import contextlib
import datetime as dt

import hypothesis
import pytest
from hypothesis import strategies

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
