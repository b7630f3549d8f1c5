"""The breaker: opens after failures in a row, tests with one attempt, waits longer each time, and closes at once."""

from hypothesis import given
from hypothesis import strategies as st

from postroad.model.delivery import adaptive_rate

NOON = 1000.0


def open_breaker(now: float = NOON) -> adaptive_rate.Breaker:
    broken = adaptive_rate.Breaker()
    for _ in range(3):
        broken.failed(now)
    return broken


def test_it_lets_everything_through_until_three_failures_in_a_row() -> None:
    fresh = adaptive_rate.Breaker()
    for _ in range(2):
        assert fresh.may_try(NOON)
        fresh.failed(NOON)
    assert (fresh.state(NOON), fresh.open_until(NOON)) == ("closed", None)
    assert fresh.may_try(NOON)
    fresh.failed(NOON)
    assert (fresh.state(NOON), fresh.open_until(NOON)) == ("open", NOON + 30)
    assert not fresh.may_try(NOON + 29.9)


def test_a_success_between_failures_starts_the_count_again() -> None:
    shaky = adaptive_rate.Breaker()
    for _ in range(5):
        shaky.failed(NOON)
        shaky.failed(NOON)
        shaky.succeeded()
    assert shaky.state(NOON) == "closed"


def test_after_its_time_one_attempt_at_a_time_may_test_the_host() -> None:
    broken = open_breaker()
    later = NOON + 30
    assert (broken.state(later), broken.open_until(later)) == ("half_open", None)
    assert broken.may_try(later)
    assert not broken.may_try(later)
    assert broken.open_until(later) == later + 60.0


def test_a_test_that_succeeds_closes_it() -> None:
    broken = open_breaker()
    assert broken.may_try(NOON + 30)
    broken.succeeded()
    assert broken.state(NOON + 30) == "closed"
    assert broken.open_until(NOON + 30) is None
    assert all(broken.may_try(NOON + 30) for _ in range(100))


def test_each_test_that_fails_opens_it_for_twice_as_long_but_ten_minutes_at_most() -> None:
    broken, now, waits = open_breaker(), NOON, []
    for _ in range(7):
        until = broken.open_until(now)
        assert until is not None
        waits.append(until - now)
        now = until
        assert broken.may_try(now)
        broken.failed(now)
    assert waits == [30, 60, 120, 240, 480, 600, 600]


def test_after_it_was_closed_it_opens_for_the_short_time_again() -> None:
    broken = open_breaker()
    assert broken.may_try(NOON + 30)
    broken.failed(NOON + 30)
    broken.succeeded()
    for _ in range(3):
        broken.failed(NOON + 200)
    assert broken.open_until(NOON + 200) == NOON + 230


def test_failures_of_attempts_that_were_under_way_do_not_open_it_for_longer() -> None:
    broken = open_breaker()
    for second in range(30):
        broken.failed(NOON + second)
    assert broken.open_until(NOON + 29) == NOON + 30


def test_a_test_that_never_reports_gives_its_place_back() -> None:
    broken = open_breaker()
    assert broken.may_try(NOON + 30)
    assert not broken.may_try(NOON + 30 + 60.0 - 0.1)
    assert broken.may_try(NOON + 30 + 60.0)
    assert not broken.may_try(NOON + 30 + 60.0)


@given(st.lists(st.tuples(st.sampled_from(["try", "failed", "succeeded"]), st.floats(0, 700)), max_size=100))
def test_whatever_happens_the_wait_is_bounded_and_ends(events: list[tuple[str, float]]) -> None:
    one, now = adaptive_rate.Breaker(), NOON
    for event, gap in events:
        now += gap
        if event == "failed":
            one.failed(now)
        elif event == "succeeded":
            one.succeeded()
            assert one.state(now) == "closed"
        else:
            may = one.open_until(now) is None
            assert one.may_try(now) is may
        until = one.open_until(now)
        assert until is None or now < until <= now + 600.0
        assert (one.state(now) == "open") <= (until is not None)
    until = one.open_until(now)
    assert one.may_try(now if until is None else until)
