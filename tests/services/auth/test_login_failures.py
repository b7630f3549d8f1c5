"""Failures: counted for a name from a network and for the network, forgiven, and bounded."""

from postroad.model import login_throttle, times
from postroad.services.auth import login_failures

NOW = 1_000_000 * times.SECOND
HERE = "192.0.2.1"
ELSEWHERE = "192.0.2.2"


def fail(
    counted: login_failures.LoginFailures, times: int, *, address: str = HERE, name: str = "jo", now: int = NOW
) -> None:
    for _ in range(times):
        counted.count(address, name, now=now)


def test_a_name_is_slowed_after_its_free_failures_and_the_wait_is_in_whole_seconds() -> None:
    counted = login_failures.LoginFailures()
    fail(counted, login_throttle.NAME.free - 1)
    assert counted.wait(HERE, "jo", now=NOW) == 0
    fail(counted, 1)
    assert counted.wait(HERE, "jo", now=NOW) == 60
    assert counted.wait(HERE, "jo", now=NOW + 59 * times.SECOND + 1) == 1
    assert counted.wait(HERE, "jo", now=NOW + 60 * times.SECOND) == 0


def test_the_same_name_elsewhere_and_another_name_here_are_not_slowed() -> None:
    counted = login_failures.LoginFailures()
    fail(counted, login_throttle.NAME.free)
    assert counted.wait(ELSEWHERE, "jo", now=NOW) == 0
    assert counted.wait(HERE, "al", now=NOW) == 0


def test_a_network_is_slowed_by_failures_with_many_names() -> None:
    counted = login_failures.LoginFailures()
    for number in range(login_throttle.NETWORK.free):
        fail(counted, 1, name=f"name{number}")
    assert counted.wait(HERE, "a new name", now=NOW) > 0
    assert counted.wait(ELSEWHERE, "a new name", now=NOW) == 0


def test_addresses_of_one_ipv6_network_are_one_client() -> None:
    counted = login_failures.LoginFailures()
    for number in range(login_throttle.NAME.free):
        fail(counted, 1, address=f"2001:db8::{number:x}")
    assert counted.wait("2001:db8::ffff", "jo", now=NOW) > 0


def test_an_empty_name_is_not_the_network() -> None:
    counted = login_failures.LoginFailures()
    fail(counted, login_throttle.NAME.free, name="")
    assert counted.wait(HERE, "", now=NOW) > 0
    assert counted.wait(HERE, "jo", now=NOW) == 0


def test_a_success_forgives_the_name_and_leaves_the_network_its_other_failures() -> None:
    counted = login_failures.LoginFailures()
    for number in range(login_throttle.NETWORK.free - 1):
        fail(counted, 1, name=f"name{number}")
    fail(counted, 1)
    counted.reset(HERE, "jo")
    assert counted.wait(HERE, "jo", now=NOW) == 0
    fail(counted, 1)
    assert counted.wait(HERE, "jo", now=NOW) > 0


def test_an_attempt_that_was_never_checked_is_taken_off() -> None:
    counted = login_failures.LoginFailures()
    fail(counted, login_throttle.NAME.free)
    counted.withdraw(HERE, "jo")
    assert counted.wait(HERE, "jo", now=NOW) == 0
    counted.withdraw(ELSEWHERE, "nobody")
    assert counted.wait(ELSEWHERE, "nobody", now=NOW) == 0


def test_the_counters_are_bounded_and_the_busy_ones_stay() -> None:
    counted = login_failures.LoginFailures(max_counters=10)
    for failure in range(login_throttle.NAME.free):
        for other in range(3):
            fail(counted, 1, address=f"198.51.100.{3 * failure + other}", name="someone")
        fail(counted, 1)
    assert len(counted._clear_at) == 10
    assert counted.wait(HERE, "jo", now=NOW) > 0
