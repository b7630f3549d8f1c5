"""Durations and ordinal numbers for people."""

from typing import Final

_SECOND: Final = 1_000_000
# Each unit is used up to twice the next one: "90 min" is more precise than "1 h".
_UNITS: Final = ((1, "s", 120), (60, "min", 7_200), (3_600, "h", 172_800), (86_400, "d", 0))
_TEENS: Final = (11, 12, 13)
_ENDINGS: Final = {1: "st", 2: "nd", 3: "rd"}


def format_duration(microseconds: int) -> str:
    """A duration in one unit, rounded down: `45 s`, `4 min`, `3 h`, `2 d`."""
    seconds = max(0, microseconds) // _SECOND
    for size, name, below in _UNITS:
        if seconds < below or not below:
            return f"{seconds // size} {name}"
    raise AssertionError("the last unit takes everything")


def relative_time(moment: int, *, now: int) -> str:
    """A time relative to now: `in 4 min`, `now`, `2 h ago`."""
    if abs(moment - now) < _SECOND:
        return "now"
    return f"in {format_duration(moment - now)}" if moment > now else f"{format_duration(now - moment)} ago"


def ordinal(number: int) -> str:
    """An ordinal number: `1st`, `2nd`, `11th`."""
    ending = "th" if number % 100 in _TEENS else _ENDINGS.get(number % 10, "th")
    return f"{number}{ending}"
