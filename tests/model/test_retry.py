"""The schedule: how long to wait, within which bounds, and when it is over."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.model.delivery import retry
from postroad.model.units import times

SECOND = times.SECOND
DEFAULT = (60, 300, 900, 1800, 3600, 7200, 14400, 28800, 28800)
HOUR = 3600

schedules = st.lists(st.integers(1, 100_000), min_size=1, max_size=20)
chances = st.floats(0, 1)


@pytest.mark.parametrize("chance, share", [(0.0, 1.0), (0.5, 1.05), (1.0, 1.1)])
def test_each_delay_is_the_one_of_the_schedule_and_up_to_a_tenth_more(chance: float, share: float) -> None:
    delays = [retry.delay(DEFAULT, attempts, random_fraction=chance, retry_after=None) for attempts in range(1, 10)]
    assert delays == [round(seconds * share * SECOND) for seconds in DEFAULT]


def test_the_schedule_is_over_after_one_attempt_more_than_it_has_delays() -> None:
    assert retry.delay(DEFAULT, 9, random_fraction=0.0, retry_after=None) == 28_800 * SECOND
    assert retry.delay(DEFAULT, 10, random_fraction=0.5, retry_after=None) is None
    assert retry.delay(DEFAULT, 10, random_fraction=0.5, retry_after=60) is None
    assert retry.delay((), 1, random_fraction=0.5, retry_after=None) is None


def test_a_destination_is_not_asked_before_the_time_that_it_named() -> None:
    assert retry.delay(DEFAULT, 1, random_fraction=0.0, retry_after=300) == 300 * SECOND
    assert retry.delay(DEFAULT, 1, random_fraction=1.0, retry_after=300) == 330 * SECOND


def test_a_destination_cannot_make_a_delay_shorter() -> None:
    assert retry.delay(DEFAULT, 4, random_fraction=0.0, retry_after=10) == 1800 * SECOND


def test_a_destination_cannot_hold_mail_for_longer_than_four_hours() -> None:
    assert retry.delay(DEFAULT, 1, random_fraction=1.0, retry_after=7 * 24 * HOUR) == 4 * HOUR * SECOND
    assert retry.delay(DEFAULT, 9, random_fraction=0.0, retry_after=7 * 24 * HOUR) == 8 * HOUR * SECOND


def test_a_delay_before_the_first_attempt_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="none was made"):
        retry.delay(DEFAULT, 0, random_fraction=0.5, retry_after=None)


def test_a_lifetime_is_the_longest_that_the_schedule_can_take() -> None:
    assert retry.lifetime(DEFAULT) == round(sum(DEFAULT) * 1.1) * SECOND
    assert retry.lifetime(()) == 0


@given(schedules, st.integers(1, 25), chances, st.none() | st.integers(0, 1_000_000))
def test_a_delay_keeps_to_its_bounds(schedule: list[int], attempts: int, chance: float, after: int | None) -> None:
    delay = retry.delay(schedule, attempts, random_fraction=chance, retry_after=after)
    if attempts > len(schedule):
        assert delay is None
        return
    assert delay is not None
    scheduled = schedule[attempts - 1] * SECOND
    assert delay >= scheduled
    assert delay >= min(after or 0, 4 * HOUR) * SECOND
    assert delay <= max(round(scheduled * 1.1), 0 if after is None else 4 * HOUR * SECOND)


@given(schedules, st.lists(chances, min_size=20, max_size=20))
def test_a_whole_schedule_never_outlives_the_lifetime(schedule: list[int], chances: list[float]) -> None:
    total = 0
    for attempts, chance in enumerate(chances, start=1):
        delay = retry.delay(schedule, attempts, random_fraction=chance, retry_after=None)
        if delay is None:
            break
        total += delay
    # Each delay is rounded to a microsecond on its own.
    assert total <= retry.lifetime(schedule) + len(schedule)


# Urgent recipients, and those that expire.


def test_urgent_recipients_are_retried_soon_and_then_every_minute() -> None:
    waits = [retry.urgent_delay(attempts, random_fraction=0, retry_after=None) for attempts in range(1, 9)]
    assert waits == [seconds * SECOND for seconds in (5, 10, 20, 30, 60, 60, 60, 60)]
    assert retry.urgent_delay(1, random_fraction=1, retry_after=None) == 5_500_000
    assert retry.urgent_delay(1, random_fraction=0, retry_after=300) == 300 * SECOND


@pytest.mark.parametrize(
    "wait, left, retry_after, expected",
    [
        (60, 120, None, 60),  # in time
        (300, 600, None, 300),
        (900, 600, None, 540),  # a minute before the end
        (60, 40, None, 30),  # a quarter before the end
        (60, 6, None, 60),  # no time for another one
        (4, 5, None, 5),
        (300, 200, 300, 300),  # the server named a time after the end
        (300, 310, 300, 300),  # a time just before the end
        (60, 0, None, 60),
        (60, -5, None, 60),  # the attempt lasted beyond the end
    ],
)
def test_an_attempt_after_the_end_is_made_before_it(
    wait: int, left: int, retry_after: int | None, expected: int
) -> None:
    moved = retry.before_expiry(wait * SECOND, left=left * SECOND, retry_after=retry_after)
    assert moved == expected * SECOND
