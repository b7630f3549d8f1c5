"""Warm-up: a young sender domain may send to so many recipients a day, more each day, until it is free.

Days are of UTC. A day counts when at least half of its cap was used; a day that used less is repeated, and days without
mail are not days. The state is that of the last day with mail. A day that has begun goes on when a clock is set back:
no clock and no host gives it a second time.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from postroad.model import times

# Hosts may see midnight at different moments. A day from further ahead was written by a clock that was wrong, and would
# hold the domain back until it comes.
MAX_DAYS_AHEAD: Final = 1


class State(msgspec.Struct, frozen=True):
    """The last day with mail (days since 1970), the place of its cap in the schedule, and the recipients so far."""

    day: int
    step: int
    used: int


class View(msgspec.Struct, frozen=True):
    """How a domain stands: today's use and cap, and tomorrow's cap if nothing more is sent. None is without a cap."""

    used: int
    cap: int | None
    tomorrow: int | None
    # When tomorrow begins, in microseconds since 1970.
    next_at: int


class Step(StrEnum):
    """Where a step of the schedule is."""

    DONE = "done"
    TODAY = "today"
    AHEAD = "ahead"


class Day(msgspec.Struct, frozen=True, kw_only=True):
    """A step of the schedule: its number from 1 on, its cap, and its day (days since 1970).

    Of those that are done the day is not known any more. How much was used is known of today alone.
    """

    number: int
    cap: int
    day: int | None
    used: int | None
    state: Step


def on_day(state: State | None, *, day: int, caps: Sequence[int]) -> State:
    """The state as it is on a day, before anything is sent."""
    if state is None:
        return State(day, 0, 0)
    if day < state.day - MAX_DAYS_AHEAD:
        return State(day, state.step, state.used)
    if day <= state.day:
        return state
    return State(day, _next_step(state, caps), 0)


def at(state: State | None, *, now: int, caps: Sequence[int]) -> State:
    """The state as it is at a moment."""
    return on_day(state, day=times.day_of(now), caps=caps)


def cap(state: State, caps: Sequence[int]) -> int | None:
    """The most that the state's day allows; None for a domain that is free."""
    return caps[state.step] if state.step < len(caps) else None


def has_room(state: State, recipients: int, *, caps: Sequence[int]) -> bool:
    """Whether so many recipients more are within the day's cap."""
    limit = cap(state, caps)
    return limit is None or state.used + recipients <= limit


def use(state: State, recipients: int) -> State:
    """The state after so many recipients more."""
    return State(state.day, state.step, state.used + recipients)


def view(state: State, caps: Sequence[int]) -> View:
    """What to tell of a state."""
    tomorrow = State(state.day + 1, _next_step(state, caps), 0)
    return View(state.used, cap(state, caps), cap(tomorrow, caps), tomorrow.day * times.DAY)


def calendar(state: State, caps: Sequence[int]) -> list[Day]:
    """The schedule as it goes on if each day is used enough, the day after which is free; empty when today is free."""
    if cap(state, caps) is None:
        return []
    days = []
    for place, limit in enumerate(caps):
        ahead = place - state.step
        days.append(
            Day(
                number=place + 1,
                cap=limit,
                day=state.day + ahead if ahead >= 0 else None,
                used=state.used if ahead == 0 else None,
                state=Step.TODAY if ahead == 0 else Step.AHEAD if ahead > 0 else Step.DONE,
            )
        )
    return days


def _next_step(state: State, caps: Sequence[int]) -> int:
    limit = cap(state, caps)
    return state.step if limit is None or 2 * state.used < limit else state.step + 1
