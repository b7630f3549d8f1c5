"""Slowing: what is free, what has to wait, who counts as one client, and which counters an attempt has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.model.people import login_rules
from postroad.model.units import times

NOW = 1_000_000 * times.SECOND
POLICY = login_rules.FailureLimit(free=3, interval=10 * times.SECOND)
ONE = login_rules.Counter(None, "one")
ALL_LIMITS = [
    login_rules.NAME,
    login_rules.ANYWHERE,
    *login_rules.IPV4_NETWORKS.values(),
    *login_rules.IPV6_NETWORKS.values(),
]


def wait(policy: login_rules.FailureLimit, *, clear_at: int, now: int) -> int:
    return login_rules.wait({ONE: policy}, {ONE: clear_at}, now=now)


def count(policy: login_rules.FailureLimit, *, clear_at: int, now: int) -> int:
    return login_rules.count({ONE: policy}, {ONE: clear_at}, now=now)[ONE]


def after(failures: int, policy: login_rules.FailureLimit = POLICY) -> int:
    clear_at = 0
    for _ in range(failures):
        clear_at = count(policy, clear_at=clear_at, now=NOW)
    return clear_at


def test_nobody_waits_before_the_first_failure() -> None:
    assert wait(POLICY, clear_at=0, now=NOW) == 0


def test_the_free_failures_cost_nothing_and_the_next_attempt_waits_one_interval() -> None:
    assert wait(POLICY, clear_at=after(2), now=NOW) == 0
    assert wait(POLICY, clear_at=after(3), now=NOW) == POLICY.interval


def test_the_wait_passes_with_time() -> None:
    clear_at = after(3)
    assert wait(POLICY, clear_at=clear_at, now=NOW + POLICY.interval - 1) == 1
    assert wait(POLICY, clear_at=clear_at, now=NOW + POLICY.interval) == 0


def test_one_more_failure_expires_each_interval() -> None:
    later = NOW + POLICY.interval
    clear_at = count(POLICY, clear_at=after(3), now=later)
    assert wait(POLICY, clear_at=clear_at, now=later) == POLICY.interval


def test_after_a_long_rest_all_free_failures_are_back_but_not_more() -> None:
    clear_at = after(3)
    much_later = NOW + 1000 * POLICY.interval
    for _ in range(3):
        assert wait(POLICY, clear_at=clear_at, now=much_later) == 0
        clear_at = count(POLICY, clear_at=clear_at, now=much_later)
    assert wait(POLICY, clear_at=clear_at, now=much_later) == POLICY.interval


def test_a_withdrawn_failure_was_never_there() -> None:
    assert login_rules.withdraw({ONE: POLICY}, {ONE: after(3)}) == {ONE: after(2)}


@pytest.mark.parametrize("policy", ALL_LIMITS)
def test_a_clock_that_is_set_back_keeps_nobody_waiting(policy: login_rules.FailureLimit) -> None:
    earlier = NOW - times.HOUR
    for failures in (1, policy.free):
        assert wait(policy, clear_at=after(failures, policy), now=earlier) == 0
    # It counts from there as it does anywhere.
    clear_at = after(policy.free, policy)
    for _ in range(policy.free):
        clear_at = count(policy, clear_at=clear_at, now=earlier)
    assert wait(policy, clear_at=clear_at, now=earlier) == policy.interval


@given(gaps=st.lists(st.integers(min_value=0, max_value=30 * times.SECOND), max_size=60))
def test_no_rhythm_of_attempts_gets_more_than_the_free_ones_and_one_an_interval(gaps: list[int]) -> None:
    now, clear_at, allowed = NOW, 0, 0
    for gap in gaps:
        now += gap
        if wait(POLICY, clear_at=clear_at, now=now) == 0:
            clear_at = count(POLICY, clear_at=clear_at, now=now)
            allowed += 1
    assert allowed <= POLICY.free + (now - NOW) // POLICY.interval


def test_each_larger_network_has_a_larger_allowance() -> None:
    second = 1_000_000
    limits = {
        "a name here": login_rules.NAME,
        "a name anywhere": login_rules.ANYWHERE,
        "a name from a new network": login_rules.NEWCOMER,
        "a name from all new networks": login_rules.NEWCOMERS,
        **{f"IPv4 /{bits}": limit for bits, limit in login_rules.IPV4_NETWORKS.items()},
        **{f"IPv6 /{bits}": limit for bits, limit in login_rules.IPV6_NETWORKS.items()},
        "the audit log": login_rules.AUDITED,
    }
    assert {name: (limit.free, limit.interval / second) for name, limit in limits.items()} == {
        "a name here": (5, 60),
        "a name anywhere": (50, 30),
        "a name from a new network": (3, 1800),
        "a name from all new networks": (500, 10),
        "IPv4 /32": (100, 3),
        "IPv4 /24": (400, 0.75),
        "IPv6 /64": (100, 3),
        "IPv6 /56": (200, 1.5),
        "IPv6 /48": (400, 0.75),
        "the audit log": (10, 600),
    }


def names(counters: login_rules.Counters) -> list[tuple[str | None, str | None]]:
    return [(counter.network, counter.name) for counter in counters]


def test_an_attempt_counts_for_its_name_here_for_its_name_anywhere_and_for_growing_networks() -> None:
    assert names(login_rules.of_user("jo", "192.0.2.7", is_known=False)) == [
        ("192.0.2.7", "jo"),
        (None, "jo"),
        ("192.0.2.7", None),
        ("192.0.2.0/24", None),
    ]
    assert names(login_rules.of_user("jo", "2001:db8:1:2345::1", is_known=False)) == [
        ("2001:db8:1:2345::/64", "jo"),
        (None, "jo"),
        ("2001:db8:1:2345::/64", None),
        ("2001:db8:1:2300::/56", None),
        ("2001:db8:1::/48", None),
    ]


@pytest.mark.parametrize(
    "address, network",
    [("192.0.2.7", "192.0.2.0/24"), ("2001:db8:1:2345::1", "2001:db8:1::/48"), ("not an address", "not an address")],
)
def test_the_first_attempts_of_a_network_count_apart_from_those_from_anywhere(address: str, network: str) -> None:
    newcomer = login_rules.of_newcomer("jo", address).keys()
    of_user = login_rules.of_user("jo", address, is_known=False).keys()
    assert newcomer - of_user == {(network, "jo", True), (None, "jo", True)}
    assert of_user - newcomer == {(None, "jo", False)}


def test_a_known_network_has_an_allowance_of_its_own() -> None:
    assert names(login_rules.of_user("jo", "192.0.2.7", is_known=True)) == [("192.0.2.7", "jo")]
    assert names(login_rules.of_credential("smtp_1", "192.0.2.7", is_known=True)) == [("192.0.2.7", "smtp_1")]


def test_no_stranger_elsewhere_counts_for_a_credential() -> None:
    counters = login_rules.of_credential("smtp_1", "192.0.2.7", is_known=False)
    assert names(counters) == [("192.0.2.7", "smtp_1"), ("192.0.2.7", None), ("192.0.2.0/24", None)]


@pytest.mark.parametrize("address", ["::1", "::ffff:127.0.0.1", "", "not an address"])
def test_every_address_has_a_network(address: str) -> None:
    assert next(iter(login_rules.of_network(address))).network == login_rules.network_of(address)


def allowed_at_once(guesses: list[tuple[str, str]]) -> int:
    """How many guesses, each a name and an address, are allowed at the same time."""
    clear_at: dict[login_rules.Counter, int] = {}
    allowed = 0
    for name, address in guesses:
        newcomer = login_rules.of_newcomer(name, address)
        for counters in (newcomer, login_rules.of_user(name, address, is_known=False)):
            if login_rules.wait(counters, clear_at, now=NOW) == 0:
                clear_at.update(login_rules.count(counters, clear_at, now=NOW))
                allowed += 1
                break
    return allowed


def test_neither_a_large_network_nor_many_hosts_get_far() -> None:
    addresses = [f"2001:db8:0:{number:x}::1" for number in range(1000)]
    assert allowed_at_once([("jo", address) for address in addresses]) == 3 + 50
    assert allowed_at_once([("jo", f"{10 + number // 250}.0.{number % 250}.1") for number in range(1000)]) == 500 + 50
    assert allowed_at_once([(f"name {number}", address) for number, address in enumerate(addresses)]) == 400
    assert allowed_at_once([(f"name {number}", "192.0.2.7") for number in range(250)]) == 100


def test_a_success_clears_the_name_here_and_withdraws_one_failure_elsewhere() -> None:
    counters = login_rules.of_user("jo", "192.0.2.7", is_known=False)
    once = login_rules.count(counters, {}, now=NOW)
    twice = login_rules.count(counters, once, now=NOW)
    forgiven = login_rules.forgive(counters, twice)
    assert forgiven.pop(login_rules.Counter("192.0.2.7", "jo")) == 0
    assert forgiven.items() < once.items()


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
    assert login_rules.network_of(address) == network


@pytest.mark.parametrize(
    "address, networks, expected",
    [
        ("192.0.2.9", ["192.0.2.1"], True),
        ("192.0.3.9", ["192.0.2.1"], False),
        ("192.0.3.9", ["192.0.2.1", "192.0.3.1"], True),
        ("2001:db8:1:2::9", ["2001:db8:1:ff::/64"], True),
        ("2001:db8:2::9", ["2001:db8:1:ff::/64"], False),
        ("unix", ["unix"], True),
        ("192.0.2.9", [], False),
    ],
)
def test_an_address_is_near_the_networks_of_its_neighbours(
    address: str, networks: list[str], *, expected: bool
) -> None:
    assert login_rules.is_near(address, networks) is expected
