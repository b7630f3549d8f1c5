"""Slowing: what is free, what has to wait, and who counts as one client."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.model import login_throttle, times

NOW = 1_000_000 * times.SECOND
POLICY = login_throttle.FailureLimit(free=3, interval=10 * times.SECOND)


def after(failures: int, policy: login_throttle.FailureLimit = POLICY) -> int:
    clear_at = 0
    for _ in range(failures):
        clear_at = login_throttle.count(policy, clear_at=clear_at, now=NOW)
    return clear_at


def test_nobody_waits_before_the_first_failure() -> None:
    assert login_throttle.wait(POLICY, clear_at=0, now=NOW) == 0


def test_the_free_failures_cost_nothing_and_the_next_attempt_waits_one_interval() -> None:
    assert login_throttle.wait(POLICY, clear_at=after(2), now=NOW) == 0
    assert login_throttle.wait(POLICY, clear_at=after(3), now=NOW) == POLICY.interval


def test_the_wait_passes_with_time() -> None:
    clear_at = after(3)
    assert login_throttle.wait(POLICY, clear_at=clear_at, now=NOW + POLICY.interval - 1) == 1
    assert login_throttle.wait(POLICY, clear_at=clear_at, now=NOW + POLICY.interval) == 0


def test_one_more_failure_expires_each_interval() -> None:
    later = NOW + POLICY.interval
    clear_at = login_throttle.count(POLICY, clear_at=after(3), now=later)
    assert login_throttle.wait(POLICY, clear_at=clear_at, now=later) == POLICY.interval


def test_after_a_long_rest_all_free_failures_are_back_but_not_more() -> None:
    clear_at = after(3)
    much_later = NOW + 1000 * POLICY.interval
    for _ in range(3):
        assert login_throttle.wait(POLICY, clear_at=clear_at, now=much_later) == 0
        clear_at = login_throttle.count(POLICY, clear_at=clear_at, now=much_later)
    assert login_throttle.wait(POLICY, clear_at=clear_at, now=much_later) == POLICY.interval


def test_a_withdrawn_failure_was_never_there() -> None:
    assert login_throttle.withdraw(POLICY, clear_at=after(3)) == after(2)


@pytest.mark.parametrize("policy", [login_throttle.NAME, login_throttle.NETWORK])
def test_a_clock_that_is_set_back_keeps_nobody_waiting(policy: login_throttle.FailureLimit) -> None:
    earlier = NOW - times.HOUR
    for failures in (1, policy.free):
        assert login_throttle.wait(policy, clear_at=after(failures, policy), now=earlier) == 0
    # It counts from there as it does anywhere.
    clear_at = after(policy.free, policy)
    for _ in range(policy.free):
        clear_at = login_throttle.count(policy, clear_at=clear_at, now=earlier)
    assert login_throttle.wait(policy, clear_at=clear_at, now=earlier) == policy.interval


@given(gaps=st.lists(st.integers(min_value=0, max_value=30 * times.SECOND), max_size=60))
def test_no_rhythm_of_attempts_gets_more_than_the_free_ones_and_one_an_interval(gaps: list[int]) -> None:
    now, clear_at, allowed = NOW, 0, 0
    for gap in gaps:
        now += gap
        if login_throttle.wait(POLICY, clear_at=clear_at, now=now) == 0:
            clear_at = login_throttle.count(POLICY, clear_at=clear_at, now=now)
            allowed += 1
    assert allowed <= POLICY.free + (now - NOW) // POLICY.interval


@pytest.mark.parametrize("policy", [login_throttle.NAME, login_throttle.NETWORK])
def test_the_policies_let_people_mistype_and_stop_machines(policy: login_throttle.FailureLimit) -> None:
    day = 24 * 3600 * times.SECOND
    assert policy.free >= 5
    assert policy.free + day // policy.interval < 30_000


def test_a_name_has_five_failures_and_one_a_minute_and_a_network_a_hundred_and_one_in_three_seconds() -> None:
    assert (login_throttle.NAME.free, login_throttle.NAME.interval) == (5, 60_000_000)
    assert (login_throttle.NETWORK.free, login_throttle.NETWORK.interval) == (100, 3_000_000)


@pytest.mark.parametrize(
    "address, network",
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("not an address", "not an address"),
    ],
)
def test_a_client_is_an_ipv4_address_or_an_ipv6_network(address: str, network: str) -> None:
    assert login_throttle.network_of(address) == network
