"""Leases by a wall clock that is set forwards, backwards, or only runs."""

from postroad.model.units import times

LEASE = 60 * times.SECOND
NOON = 1_800_000_000 * times.SECOND
HOUR = times.HOUR


def at(clock: times.LeaseClock, seconds: float, *, jump: int = 0) -> int:
    """What is decided so many seconds after noon, with a clock that jumped; relative to noon."""
    return clock.expired_before(now=NOON + round(seconds * times.SECOND) + jump, monotonic=1000 + seconds) - NOON


def test_a_clock_that_only_runs_is_believed() -> None:
    clock = times.LeaseClock(LEASE)
    assert [at(clock, seconds) for seconds in (0, 1, 100, 100_000)] == [
        seconds * times.SECOND for seconds in (0, 1, 100, 100_000)
    ]


def test_a_jump_forwards_is_believed_after_a_lease_and_time_goes_on_meanwhile() -> None:
    clock = times.LeaseClock(LEASE)
    at(clock, 0)
    assert at(clock, 1, jump=HOUR) == 1 * times.SECOND
    assert at(clock, 60.9, jump=HOUR) == round(60.9 * times.SECOND)
    assert at(clock, 61, jump=HOUR) == 61 * times.SECOND + HOUR
    assert at(clock, 62, jump=HOUR) == 62 * times.SECOND + HOUR


def test_a_second_jump_does_not_begin_the_wait_anew() -> None:
    clock = times.LeaseClock(LEASE)
    at(clock, 0)
    at(clock, 1, jump=HOUR)
    assert at(clock, 30, jump=2 * HOUR) == 30 * times.SECOND
    assert at(clock, 61, jump=2 * HOUR) == 61 * times.SECOND + 2 * HOUR


def test_a_jump_backwards_is_believed_at_once_and_its_correction_waited_out() -> None:
    clock = times.LeaseClock(LEASE)
    at(clock, 0)
    assert at(clock, 1, jump=-HOUR) == 1 * times.SECOND - HOUR
    assert at(clock, 2) == 2 * times.SECOND - HOUR
    assert at(clock, 62) == 62 * times.SECOND


def test_a_clock_that_is_mended_soon_was_never_believed() -> None:
    clock = times.LeaseClock(LEASE)
    at(clock, 0)
    at(clock, 1, jump=HOUR)
    assert at(clock, 2) == 2 * times.SECOND
    # The next jump is a new one.
    assert at(clock, 61, jump=HOUR) == 61 * times.SECOND


def test_what_a_clock_gains_little_by_little_is_believed() -> None:
    clock = times.LeaseClock(LEASE)
    for step in range(10):
        assert at(clock, step, jump=step * times.SECOND) == 2 * step * times.SECOND
