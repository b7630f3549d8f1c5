"""Dates and times of forms: in the zone of the person, with the days on which clocks change."""

import zoneinfo

import pytest

from postroad import errors
from postroad.dashboard.framework import forms
from postroad.model.units import times

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")


def test_a_day_begins_and_ends_at_midnight_of_the_zone() -> None:
    assert forms.start_of_day("day", "2026-10-25", BERLIN) == times.parse("2026-10-24T22:00:00Z")
    assert forms.end_of_day("day", "2026-10-25", BERLIN) == times.parse("2026-10-25T23:00:00Z")


def test_a_time_is_read_as_it_is_written() -> None:
    moment = times.parse("2026-07-01T07:30:00Z")
    assert forms.date_field(moment, BERLIN) == "2026-07-01T09:30"
    assert forms.moment("at", "2026-07-01T09:30", BERLIN) == moment
    assert forms.moment("at", "2026-07-01T09:30:00", BERLIN) == moment


@pytest.mark.parametrize(
    "text", ["2026-07-01", "2026-07-01T09:30Z", "tomorrow", "2026-07-32T09:30", "2026-07-01 09:30"]
)
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(errors.InvalidRequest, match="at: write the time as 2026-01-31T09:30, in Europe/Berlin"):
        forms.moment("at", text, BERLIN)


@pytest.mark.parametrize("text, problem", [(None, "choose a day"), ("", "choose a day"), ("soon", "write the date as")])
def test_other_days_are_refused(text: str | None, problem: str) -> None:
    with pytest.raises(errors.InvalidRequest, match=f"day: {problem}"):
        forms.start_of_day("day", text, BERLIN)
    with pytest.raises(errors.InvalidRequest, match="day: this date is too late"):
        forms.end_of_day("day", "9999-12-31", BERLIN)
