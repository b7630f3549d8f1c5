"""The pace of a provider queue: slow start, an even rate, pauses and recovery, and never more than the limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad import config
from postroad.model.delivery import adaptive_rate

NOON = 1000.0


def make_pace(connections: int = 20, rate: int = 50) -> adaptive_rate.AdaptiveRate:
    limits = config.Provider(connections=connections, messages_per_second=rate, messages_per_connection=100)
    return adaptive_rate.AdaptiveRate(limits)


def grown_pace(connections: int = 20, rate: int = 50) -> adaptive_rate.AdaptiveRate:
    grown = make_pace(connections, rate)
    for _ in range(connections):
        grown.succeeded(NOON)
    return grown


def taken_within(one: adaptive_rate.AdaptiveRate, now: float, seconds: float) -> int:
    """How many messages start when somebody always waits for the next."""
    taken, end = 0, now + seconds
    while now < end:
        wait = one.take(now)
        taken += wait == 0
        now += max(wait, 1e-6) if wait else 0
    return taken


def test_connections_start_with_two_and_grow_with_each_success_up_to_the_limit() -> None:
    fresh = make_pace(connections=5)
    allowed = [fresh.allowed_connections]
    for _ in range(4):
        fresh.succeeded(NOON)
        allowed.append(fresh.allowed_connections)
    assert allowed == [2, 3, 4, 5, 5]


def test_a_provider_queue_of_one_connection_starts_with_one() -> None:
    assert make_pace(connections=1).allowed_connections == 1


def test_connections_halve_when_connecting_fails_but_one_is_left_to_test() -> None:
    one = grown_pace(connections=20)
    allowed = []
    for _ in range(6):
        one.connection_failed(NOON)
        allowed.append(one.allowed_connections)
    assert allowed == [10, 5, 2, 1, 1, 1]
    assert one.state(NOON) == "open"


@pytest.mark.parametrize("rate", [1, 3, 50, 1000, 10_000])
def test_messages_start_at_the_rate(rate: int) -> None:
    assert taken_within(make_pace(rate=rate), NOON, 10) == pytest.approx(rate * 10, rel=0.02, abs=1)


def test_the_wait_that_is_named_is_enough_and_asking_early_costs_nothing() -> None:
    one = make_pace(rate=1)
    assert one.take(NOON) == 0
    wait = one.take(NOON)
    assert wait == one.take(NOON) == pytest.approx(1 - 0.1)
    assert one.take(NOON + wait + 1e-9) == 0


def test_the_wait_can_be_asked_for_without_taking_a_turn() -> None:
    one = make_pace(rate=1)
    assert one.wait(NOON) == one.wait(NOON) == 0
    assert one.take(NOON) == 0
    assert one.wait(NOON) == one.take(NOON) == pytest.approx(1 - 0.1)
    one.slow_down(NOON)
    assert one.wait(NOON + 2) == 5.0 - 2


def test_the_rate_follows_what_the_destination_asks_for() -> None:
    one = make_pace(rate=50)
    assert one.rate() == pytest.approx(50)
    one.slow_down(NOON)
    assert one.rate() == pytest.approx(25)


def test_a_rest_is_not_saved_up() -> None:
    one = make_pace(rate=100)
    assert one.take(NOON) == 0
    burst = 0
    while one.take(NOON + 3600) == 0:
        burst += 1
    assert burst == pytest.approx(0.1 * 100, abs=1)


def test_slow_down_pauses_and_then_gives_half() -> None:
    one = grown_pace(connections=20, rate=100)
    one.slow_down(NOON)
    assert (one.state(NOON), one.paused_until(NOON)) == ("paused", NOON + 5)
    assert one.take(NOON + 1) == 4
    assert (one.state(NOON + 5), one.paused_until(NOON + 5)) == ("slowed", None)
    assert one.allowed_connections == 10
    assert taken_within(one, NOON + 5, 10) == pytest.approx(500, rel=0.02)


def test_a_time_that_the_destination_names_is_the_pause_within_bounds() -> None:
    for named, pause in ((60, 60), (0, 1), (86_400, 600)):
        one = make_pace()
        one.slow_down(NOON, named)
        assert one.paused_until(NOON) == NOON + pause


def test_what_was_under_way_when_the_pause_began_does_not_slow_down_further() -> None:
    one = grown_pace(connections=20)
    for _ in range(20):
        one.slow_down(NOON)
    assert (one.allowed_connections, one.paused_until(NOON)) == (10, NOON + 5)


def test_a_longer_time_that_is_named_during_a_pause_counts() -> None:
    one = grown_pace(connections=20)
    one.slow_down(NOON)
    one.slow_down(NOON + 1, 60)
    one.slow_down(NOON + 2, 30)
    assert (one.allowed_connections, one.paused_until(NOON)) == (10, NOON + 61)


def test_pauses_double_while_the_destination_goes_on_asking_up_to_ten_minutes() -> None:
    one, now, pauses = make_pace(), NOON, []
    for _ in range(10):
        one.slow_down(now)
        until = one.paused_until(now)
        assert until is not None
        pauses.append(until - now)
        now = until
    assert pauses == [5, 10, 20, 40, 80, 160, 320, 600, 600, 600]
    assert one.allowed_connections == 1
    assert taken_within(one, now, 100) > 0


def test_a_tenth_comes_back_for_every_ten_seconds_of_success_until_all_is_back() -> None:
    one = grown_pace(connections=20)
    one.slow_down(NOON)
    allowed = []
    for second in range(5, 90, 2):
        one.succeeded(NOON + second)
        if second % 10 == 5:
            allowed.append(one.allowed_connections)
    assert allowed == [10, 10, 12, 14, 16, 18, 20, 20, 20]
    assert one.state(NOON + 90) == "open"


def test_without_a_success_nothing_comes_back_until_an_hour_later_all_is_reset() -> None:
    one = grown_pace()
    one.slow_down(NOON)
    one.slow_down(NOON + 5)
    assert one.state(NOON + 3600) == "slowed"
    assert one.state(NOON + 3700) == "open"
    one.slow_down(NOON + 3700)
    assert one.paused_until(NOON + 3700) == NOON + 3705


def test_after_recovery_the_first_pause_is_short_again() -> None:
    one = grown_pace()
    one.slow_down(NOON)
    one.slow_down(NOON + 5)
    for second in range(20, 200, 10):
        one.succeeded(NOON + second)
    one.slow_down(NOON + 200)
    assert one.paused_until(NOON + 200) == NOON + 205


events = st.tuples(
    st.sampled_from(["take", "connection_failed", "slow_down", "succeeded"]),
    st.floats(0, 30),
    st.none() | st.integers(0, 10_000),
)


@given(st.integers(1, 100), st.integers(1, 10_000), st.lists(events, max_size=200))
def test_whatever_happens_it_stays_within_its_limits(
    connections: int, rate: int, happened: list[tuple[str, float, int | None]]
) -> None:
    one, now = make_pace(connections, rate), NOON
    for event, gap, named in happened:
        now += gap
        if event == "slow_down":
            one.slow_down(now, named)
        elif event == "take":
            wait = one.take(now)
            assert 0 <= wait <= 600.0
            assert wait > 0 or one.paused_until(now) is None
        else:
            getattr(one, event)(now)
        assert 1 <= one.allowed_connections <= connections
        until = one.paused_until(now)
        assert until is None or now < until <= now + 600.0
        assert (one.state(now) == "paused") is (until is not None)


@given(st.integers(1, 1000), st.lists(st.floats(0, 0.5), max_size=200))
def test_no_stretch_of_time_has_more_messages_than_the_rate_and_its_burst(rate: int, gaps: list[float]) -> None:
    one, now, passed = make_pace(rate=rate), NOON, []
    for gap in gaps:
        now += gap
        if one.take(now) == 0:
            passed.append(now)
    for first in range(len(passed)):
        for last in range(first, len(passed)):
            # A millionth for the rounding of floats.
            allowed = rate * (passed[last] - passed[first] + 0.1) + 1 + 1e-6
            assert last - first + 1 <= allowed


def test_new_limits_apply_at_once_and_a_reduced_share_stays_reduced() -> None:
    one = grown_pace(connections=20, rate=50)
    one.set_limits(config.Provider(connections=4, messages_per_second=10, messages_per_connection=7))
    assert (one.allowed_connections, one.rate(), one.limits.messages_per_connection) == (4, 10, 7)
    one.slow_down(NOON)
    reduced = one.rate()
    one.set_limits(config.Provider(connections=4, messages_per_second=100, messages_per_connection=7))
    assert one.rate() == pytest.approx(10 * reduced)


# The breaker.


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
