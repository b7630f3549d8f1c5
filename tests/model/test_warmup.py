"""Warm-up: a cap a day, steps that have to be earned, and clocks that give nothing away."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.model.domains import warmup
from postroad.model.units import times

CAPS = (200, 400, 800)
TODAY = 20_000


def on_day(state: warmup.State | None, day: int) -> warmup.State:
    return warmup.on_day(state, day=day, caps=CAPS)


def test_a_domain_begins_with_the_first_cap() -> None:
    state = on_day(None, TODAY)
    assert state == warmup.State(TODAY, 0, 0)
    assert warmup.cap(state, CAPS) == 200


def test_a_moment_belongs_to_its_utc_day() -> None:
    assert warmup.at(None, now=times.DAY * TODAY, caps=CAPS).day == TODAY
    assert warmup.at(None, now=times.DAY * (TODAY + 1) - 1, caps=CAPS).day == TODAY


def test_the_cap_is_what_may_be_used_and_not_one_more() -> None:
    state = warmup.State(TODAY, 0, 150)
    assert warmup.has_room(state, 50, caps=CAPS)
    assert not warmup.has_room(state, 51, caps=CAPS)
    assert warmup.use(state, 50) == warmup.State(TODAY, 0, 200)


@pytest.mark.parametrize("used, step", [(0, 0), (99, 0), (100, 1), (200, 1)])
def test_a_day_counts_when_half_of_it_was_used(used: int, step: int) -> None:
    assert on_day(warmup.State(TODAY, 0, used), TODAY + 1) == warmup.State(TODAY + 1, step, 0)


def test_days_without_mail_are_not_days() -> None:
    assert on_day(warmup.State(TODAY, 0, 200), TODAY + 30) == warmup.State(TODAY + 30, 1, 0)


def test_after_the_last_step_a_domain_is_free_and_stays_so() -> None:
    free = on_day(warmup.State(TODAY, 2, 400), TODAY + 1)
    assert warmup.cap(free, CAPS) is None
    assert warmup.has_room(free, 1_000_000, caps=CAPS)
    later = on_day(free, TODAY + 100)
    assert warmup.cap(later, CAPS) is None
    assert warmup.cap(warmup.State(TODAY, 9, 0), CAPS) is None


def test_a_clock_that_is_set_back_gives_no_second_day() -> None:
    state = warmup.State(TODAY, 1, 399)
    assert on_day(state, TODAY - 1) == state
    assert on_day(on_day(state, TODAY - 1), TODAY) == state


def test_a_clock_that_was_wrong_by_years_does_not_hold_a_domain_back_for_years() -> None:
    state = on_day(warmup.State(TODAY + 3650, 1, 399), TODAY)
    assert state == warmup.State(TODAY, 1, 399)
    assert on_day(state, TODAY + 1) == warmup.State(TODAY + 1, 2, 0)


@pytest.mark.parametrize(
    "state, cap, tomorrow",
    [
        (warmup.State(TODAY, 0, 99), 200, 200),
        (warmup.State(TODAY, 0, 100), 200, 400),
        (warmup.State(TODAY, 2, 399), 800, 800),
        (warmup.State(TODAY, 2, 400), 800, None),
        (warmup.State(TODAY, 3, 0), None, None),
    ],
)
def test_what_is_reported_tomorrow_is_as_things_stand(state: warmup.State, cap: int, tomorrow: int) -> None:
    view = warmup.view(state, CAPS)
    assert (view.used, view.cap, view.tomorrow, view.next_at) == (state.used, cap, tomorrow, (TODAY + 1) * times.DAY)


@given(
    st.lists(st.tuples(st.sampled_from((0, 0, 0, 1, 2)), st.sampled_from((-1, 0)), st.integers(1, 300)), max_size=60)
)
def test_hosts_that_differ_about_the_day_never_give_one_twice(sends: list[tuple[int, int, int]]) -> None:
    today, state = TODAY, on_day(None, TODAY - 1)
    used: dict[int, int] = {}
    for days, behind, recipients in sends:
        today += days
        before, state = state, on_day(state, today + behind)
        if warmup.has_room(state, recipients, caps=CAPS):
            state = warmup.use(state, recipients)
            used[state.day] = used.get(state.day, 0) + recipients
        cap = warmup.cap(state, CAPS)
        assert cap is None or used.get(state.day, 0) <= cap
        assert state.day >= before.day
        assert state.step - before.step <= state.day - before.day


def test_a_calendar_shows_each_step_with_its_day_as_far_as_that_is_known() -> None:
    days = warmup.calendar(warmup.State(TODAY, 1, 7), CAPS)
    assert [(day.number, day.cap, day.day, day.used, day.state) for day in days] == [
        (1, 200, None, None, "done"),
        (2, 400, TODAY, 7, "today"),
        (3, 800, TODAY + 1, None, "ahead"),
    ]


def test_a_calendar_comes_true_when_each_day_is_used_enough_and_then_the_domain_is_free() -> None:
    state = on_day(None, TODAY)
    days = warmup.calendar(state, CAPS)
    for day in days:
        assert (state.day, warmup.cap(state, CAPS)) == (day.day, day.cap)
        state = on_day(warmup.use(state, day.cap // 2), state.day + 1)
    assert warmup.cap(state, CAPS) is None
    assert warmup.calendar(state, CAPS) == []
