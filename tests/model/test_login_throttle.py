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


# Short names of devices.

MAC = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/"


@pytest.mark.parametrize(
    "user_agent, name",
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:131.0) Gecko/20100101 Firefox/131.0", "Firefox on Linux"),
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/130.0.0.0 Safari/537.36",
            "Chrome on Windows",
        ),
        (f"{MAC}605.1.15 (KHTML, like Gecko) Version/17.6 Safari/605.1.15", "Safari on macOS"),
        (f"{MAC}537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36 Edg/130.0.0.0", "Edge on macOS"),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 17_6 like Mac OS X) Version/17.6 Mobile Safari/604.1",
            "Safari on iPhone",
        ),
        (
            "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 Chrome/130.0.0.0 Mobile Safari/537.36",
            "Chrome on Android",
        ),
        ("curl/8.5.0", "curl/8.5.0"),
        ("python-httpx/0.28.1", "python-httpx/0.28.1"),
        ("<script>", "Unknown device"),
        ("", "Unknown device"),
        ("x" * 1_000, "x" * 40),
    ],
)
def test_a_device_has_a_short_name(user_agent: str, name: str) -> None:
    assert login_rules.device_name(user_agent) == name


# Weak passwords: common ones and what people do to them, patterns, and one's own address.

COMMON = {"password", "dragon", "letmein", "iloveyou", "q1w2e3r4t5"}


@pytest.mark.parametrize(
    "password",
    [
        "password",
        "PASSWORD",
        "password123",
        "2024Password!",
        "P@ssw0rd2024",
        "Passw0rd!!",
        "p455w0rd",
        "passwordpassword",
        "Dragon-12345",
        "!letmein!",
        "1l0vey0u99",
        "Q1w2e3r4t5",
        "aaaaaaaaaa",
        "1212121212",
        "abcabcabcabc",
        "kq.1xkq.1x",
        "xyz.!xyz.!xy",
        "1234567890",
        "0987654321",
        "qwertyuiop",
        "QWERTZuiop12",
        "azertyuiop",
        "poiuytrewq",
        "1qaz2wsx3edc",
        "qweasdzxc123",
        "abcdefghij1!",
        "12345678abc",
        "12345678xk2",
    ],
)
def test_what_is_common_or_a_pattern(password: str) -> None:
    assert login_rules.is_common_password(password, COMMON)


@pytest.mark.parametrize(
    "password",
    [
        "correct horse battery",
        "kX9#vLw2Qz",
        "dragon8471936",  # seven more characters
        "my dragon is red",
        "mango-tree-17",
        "hqbtkahqbtka",
        "horsesixhorse",
        "1234 is not enough",
        "пароль из слов",
        "p4 and more p4",
    ],
)
def test_what_is_neither(password: str) -> None:
    assert not login_rules.is_common_password(password, COMMON)


@pytest.mark.parametrize(
    "password",
    [
        "jo.smith@example.com",
        "JO.SMITH@EXAMPLE.COM1",
        "smith12345",
        "Jo.Smith2024",
        "example-2024",
        "smithexample",
        "12smith345",
    ],
)
def test_what_is_little_more_than_the_address(password: str) -> None:
    assert login_rules.is_own_address(password, "jo.smith@example.com")


@pytest.mark.parametrize(
    "password", ["the horse of jo.smith", "smith-and-sons", "jojojojojo", "come on then", "comcomcomcom"]
)
def test_a_part_of_the_address_may_be_a_part_of_the_password(password: str) -> None:
    assert not login_rules.is_own_address(password, "jo.smith@example.com")


@given(st.text(max_size=256), st.text(max_size=64))
def test_any_text_has_an_answer(password: str, email: str) -> None:
    login_rules.is_common_password(password, COMMON)
    login_rules.is_own_address(password, email)
