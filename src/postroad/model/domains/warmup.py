"""Warm-up: a daily cap on the recipients of a new sender domain that grows until there is none.

Days are UTC days. A day counts when at least half of its cap was used; otherwise its cap applies again. Days without
mail do not count. The state is that of the last day with mail. A day that has begun continues when a clock is set back,
so that its cap is not granted twice.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from postroad.model.units import times

# Hosts may see midnight at different moments. A day further ahead was written by a wrong clock and would block the
# domain until then.
MAX_DAYS_AHEAD: Final = 1


class State(msgspec.Struct, frozen=True):
    """The last day with mail (days since 1970), its step in the schedule, and the recipients so far."""

    day: int
    step: int
    used: int


class View(msgspec.Struct, frozen=True):
    """Today's use and cap, and tomorrow's cap if nothing more is sent. None means no cap."""

    used: int
    cap: int | None
    tomorrow: int | None
    # When tomorrow begins, in microseconds since 1970.
    next_at: int


class Step(StrEnum):
    """The state of a step of the schedule."""

    DONE = "done"
    TODAY = "today"
    AHEAD = "ahead"


class Day(msgspec.Struct, frozen=True, kw_only=True):
    """A step of the schedule: its number from 1 on, its cap, and its day (days since 1970).

    The day of a completed step is not known; the use is known for today only.
    """

    number: int
    cap: int
    day: int | None
    used: int | None
    state: Step


def on_day(state: State | None, *, day: int, caps: Sequence[int]) -> State:
    """The state on a day, before anything is sent."""
    if state is None:
        return State(day, 0, 0)
    if day < state.day - MAX_DAYS_AHEAD:
        return State(day, state.step, state.used)
    if day <= state.day:
        return state
    return State(day, _next_step(state, caps), 0)


def at(state: State | None, *, now: int, caps: Sequence[int]) -> State:
    return on_day(state, day=times.day_of(now), caps=caps)


def cap(state: State, caps: Sequence[int]) -> int | None:
    """The cap of the state's day; None after the warm-up."""
    return caps[state.step] if state.step < len(caps) else None


def has_room(state: State, recipients: int, *, caps: Sequence[int]) -> bool:
    """Whether this many more recipients are within the day's cap."""
    limit = cap(state, caps)
    return limit is None or state.used + recipients <= limit


def use(state: State, recipients: int) -> State:
    return State(state.day, state.step, state.used + recipients)


def view(state: State, caps: Sequence[int]) -> View:
    tomorrow = State(state.day + 1, _next_step(state, caps), 0)
    return View(state.used, cap(state, caps), cap(tomorrow, caps), tomorrow.day * times.DAY)


def calendar(state: State, caps: Sequence[int]) -> list[Day]:
    """The schedule if each day is used enough; empty when there is no cap today."""
    if cap(state, caps) is None:
        return []
    days = []
    for step, limit in enumerate(caps):
        ahead = step - state.step
        days.append(
            Day(
                number=step + 1,
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
