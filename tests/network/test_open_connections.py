"""Connections are counted in all and by client network."""

import asyncio

import pytest

from postroad.network import open_connections
from postroad.network.open_connections import Excess


class Connection:
    """One that does nothing."""

    transport: asyncio.Transport

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
    counted.enter(connections[0], first)
    assert counted.excess(first) is None
    counted.enter(connections[1], second)
    assert counted.excess(second) == excess
    assert counted.leave(connections[0], first)
    assert counted.excess(second) is None
    assert not counted.leave(connections[0], first)
    assert counted.leave(connections[1], second)
    assert len(counted) == 0


def test_an_exempt_address_counts_only_in_the_total() -> None:
    counted = open_connections.OpenConnections(total=2, per_address=1, is_exempt=lambda one: one == "192.0.2.1")
    for _ in range(2):
        counted.enter(Connection(), "192.0.2.1")
        assert counted.excess("192.0.2.1") is None
    counted.enter(Connection(), "192.0.2.1")
    assert counted.excess("192.0.2.1") == Excess.TOTAL
