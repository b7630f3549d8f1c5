"""The open connections of a listener: how many there may be, and how many of them from one address.

An IPv6 network counts as one address, because a client has all of it. Reverse proxies bring the connections of many
clients, so those that the operator trusts are bounded by the total alone.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from enum import Enum, auto

from postroad.model import login_throttle
from postroad.network import listener


class Excess(Enum):
    """The limit that a connection exceeds."""

    TOTAL = auto()
    PER_ADDRESS = auto()


class OpenConnections:
    """A collection that connections enter and leave by themselves."""

    def __init__(self, *, total: int, per_address: int, is_exempt: Callable[[str], bool] | None = None) -> None:
        self._total = total
        self._per_address = per_address
        self._is_exempt = is_exempt
        self._open: set[listener.Connection] = set()
        self._by_network: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[listener.Connection]:
        return iter(self._open)

    def __contains__(self, connection: object) -> bool:
        return connection in self._open

    def enter(self, connection: listener.Connection, address: str) -> None:
        """Count a connection."""
        self._open.add(connection)
        self._by_network[login_throttle.network_of(address)] += 1

    def leave(self, connection: listener.Connection, address: str) -> bool:
        """Stop counting it; whether it was counted."""
        if connection not in self._open:
            return False
        self._open.discard(connection)
        network = login_throttle.network_of(address)
        self._by_network[network] -= 1
        if not self._by_network[network]:
            del self._by_network[network]
        return True

    def excess(self, address: str) -> Excess | None:
        """The limit that the newest connection, from this address, exceeds."""
        if len(self._open) > self._total:
            return Excess.TOTAL
        if self._by_network[login_throttle.network_of(address)] <= self._per_address:
            return None
        return None if self._is_exempt is not None and self._is_exempt(address) else Excess.PER_ADDRESS
