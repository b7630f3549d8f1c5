"""The schedule of webhooks: exactly seven attempts, and how far chance may move them."""

import pytest

from postroad.model.events import webhook_schedule
from tests.contexts import SECOND

SCHEDULE = (5, 300, 1800, 7200, 18000, 36000)


def test_there_are_seven_attempts_with_the_delays_of_the_contract_between_them() -> None:
    assert webhook_schedule.attempts(SCHEDULE) == 7
    delays = [webhook_schedule.delay(SCHEDULE, made, random_fraction=0.0) for made in range(1, 8)]
    assert delays == [5 * SECOND, 300 * SECOND, 1800 * SECOND, 7200 * SECOND, 18000 * SECOND, 36000 * SECOND, None]


@pytest.mark.parametrize("chance, factor", [(0.0, 1.0), (0.5, 1.05), (1.0, 1.1)])
def test_jitter_adds_up_to_a_tenth_and_takes_nothing_away(chance: float, factor: float) -> None:
    for made, seconds in enumerate(SCHEDULE[1:], start=2):
        assert webhook_schedule.delay(SCHEDULE, made, random_fraction=chance) == round(factor * seconds) * SECOND


@pytest.mark.parametrize("random_fraction", [0.0, 0.3, 1.0])
def test_delays_under_a_minute_are_exact(random_fraction: float) -> None:
    assert webhook_schedule.delay(SCHEDULE, 1, random_fraction=random_fraction) == 5 * SECOND
    assert webhook_schedule.delay((59,), 1, random_fraction=random_fraction) == 59 * SECOND


def test_a_minute_has_jitter_already() -> None:
    assert webhook_schedule.delay((60,), 1, random_fraction=1.0) == 66 * SECOND


def test_without_delays_there_is_one_attempt() -> None:
    assert webhook_schedule.attempts(()) == 1
    assert webhook_schedule.delay((), 1, random_fraction=0.5) is None


def test_more_attempts_than_a_schedule_that_was_shortened_has_are_the_end() -> None:
    assert webhook_schedule.delay((5,), 6, random_fraction=0.5) is None


@pytest.mark.parametrize("made", [0, -1])
def test_no_delay_follows_no_attempt(made: int) -> None:
    with pytest.raises(ValueError, match="none was made"):
        webhook_schedule.delay(SCHEDULE, made, random_fraction=0.5)
