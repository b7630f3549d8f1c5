"""Connections are counted in all and by the networks around their address; idle strangers make room for newcomers."""

import asyncio

import pytest

from postroad.network import open_connections
from postroad.network.open_connections import Excess


class Connection:
    """One that is idle since a time, or in use."""

    transport: asyncio.Transport

    def __init__(self, idle_since: float | None = None) -> None:
        self.idle_since = idle_since
        self.is_evicted = False

    def evict(self) -> None:
        """Make room."""
        self.is_evicted = True

    def shutdown(self) -> None:
        """Nothing to close."""

    def sweep(self, now: float) -> None:
        """Nothing is overdue."""


@pytest.mark.parametrize(
    "first, second, excess",
    [
        ("2001:db8::1", "2001:db8::2", Excess.PER_ADDRESS),
        ("2001:db8::1", "2001:db8:0:1::1", None),
        ("192.0.2.1", "::ffff:192.0.2.1", Excess.PER_ADDRESS),
        ("192.0.2.1", "192.0.2.2", None),
        ("", "", Excess.PER_ADDRESS),
    ],
)
def test_an_ipv6_network_counts_as_one_address(first: str, second: str, excess: Excess | None) -> None:
    counted = open_connections.OpenConnections(total=9, per_address=1)
    connections = [Connection(), Connection()]
    assert counted.enter(connections[0], first) is None
    assert counted.enter(connections[1], second) == excess
    assert counted.leave(connections[0])
    assert not counted.leave(connections[0])
    assert counted.leave(connections[1])
    assert counted.enter(connections[0], second) is None
    assert len(counted) == 1


@pytest.mark.parametrize(
    "pattern, admitted",
    [
        ("192.0.2.{}", 40),  # an IPv4 /24
        ("2001:db8:0:{:x}::1", 20),  # the /64 networks of an IPv6 /56
        ("2001:db8:0:{:x}00::1", 40),  # the /56 networks of an IPv6 /48
        ("2001:db8:{:x}::1", 100),  # networks that nobody holds together
        ("192.0.{}.1", 100),
    ],
)
def test_larger_networks_have_larger_limits(pattern: str, admitted: int) -> None:
    counted = open_connections.OpenConnections(total=1_000, per_address=10)
    results = [counted.enter(Connection(), pattern.format(place)) for place in range(100)]
    assert results == [None] * admitted + [Excess.PER_ADDRESS] * (100 - admitted)


def test_an_exempt_address_counts_only_in_the_total() -> None:
    counted = open_connections.OpenConnections(total=5, per_address=1, is_exempt=lambda one: one == "192.0.2.1")
    for _ in range(5):
        assert counted.enter(Connection(), "192.0.2.1") is None
    assert counted.enter(Connection(), "192.0.2.1") == Excess.TOTAL
    others = open_connections.OpenConnections(total=99, per_address=1, is_exempt=lambda one: one == "192.0.2.1")
    for _ in range(50):
        others.enter(Connection(), "192.0.2.1")
    assert others.enter(Connection(), "192.0.2.2") is None, "a proxy uses up nothing of the network around it"


def test_the_connection_that_is_idle_for_longest_makes_room() -> None:
    counted = open_connections.OpenConnections(total=4, per_address=9)
    served, first, second, third = (Connection(since) for since in (None, 2.0, 3.0, 4.0))
    for place, connection in enumerate((served, first, second, third)):
        assert counted.enter(connection, f"198.51.{place}.1") is None
    # It has been used since it came.
    first.idle_since = 5.0
    assert counted.enter(Connection(6.0), "203.0.113.1") is None
    assert [one.is_evicted for one in (served, first, second, third)] == [False, False, True, False]
    assert second in counted, "it is closed by and by"
    assert counted.enter(Connection(7.0), "203.0.113.2") is None
    assert [one.is_evicted for one in (served, first, third)] == [False, False, True]
    assert counted.leave(second)
    assert counted.leave(third)
    assert len(counted) == 4


def test_connections_that_were_all_used_make_room_by_their_last_use() -> None:
    counted = open_connections.OpenConnections(total=3, per_address=9)
    used = [Connection(float(since)) for since in range(1, 4)]
    for connection in used:
        counted.enter(connection, "192.0.2.1")
    for connection, since in zip(used, (9.0, 7.0, 8.0), strict=True):
        connection.idle_since = since
    assert counted.enter(Connection(10.0), "192.0.2.1") is None
    assert [one.is_evicted for one in used] == [False, True, False]


def test_a_newcomer_is_refused_while_all_others_are_served() -> None:
    counted = open_connections.OpenConnections(total=2, per_address=9)
    for _ in range(2):
        counted.enter(Connection(), "192.0.2.1")
    assert counted.enter(Connection(1.0), "192.0.2.2") == Excess.TOTAL


def test_who_opens_many_connections_loses_their_own() -> None:
    counted = open_connections.OpenConnections(total=99, per_address=2)
    other = Connection(1.0)
    counted.enter(other, "203.0.113.1")
    many = [Connection(float(since)) for since in range(2, 9)]
    for connection in many:
        assert counted.enter(connection, "192.0.2.1") is None
    assert not other.is_evicted
    assert [one.is_evicted for one in many] == [True] * 5 + [False] * 2


def test_strangers_do_not_replace_known_clients_and_known_clients_replace_strangers() -> None:
    counted = open_connections.OpenConnections(total=2, per_address=9)
    authenticated = Connection()
    counted.enter(authenticated, "192.0.2.1")
    counted.note_authenticated(authenticated)
    counted.leave(authenticated)
    known = Connection(1.0)
    counted.enter(known, "192.0.2.1")
    strangers = [Connection(float(since)) for since in range(2, 9)]
    for place, stranger in enumerate(strangers):
        assert counted.enter(stranger, f"203.0.{place}.1") is None
    assert not known.is_evicted
    assert [one.is_evicted for one in strangers] == [True] * 6 + [False]
    assert counted.enter(Connection(10.0), "192.0.2.1") is None
    assert not known.is_evicted
    assert strangers[-1].is_evicted
    assert counted.enter(Connection(11.0), "203.0.99.1") == Excess.TOTAL, "only known clients are left"
