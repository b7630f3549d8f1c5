"""Spans of time and places in a row, as people say them."""

import pytest

from postroad.model.units import times

SECOND = 1_000_000


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
