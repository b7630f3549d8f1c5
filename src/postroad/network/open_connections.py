"""The open connections of a listener: how many there may be, and how many of them from one address or network.

A client on IPv6 has a whole network, and a hosting customer often addresses of one IPv4 /24, so the networks around an
address count too, each with a larger limit (`model/login_throttle.py`). Reverse proxies bring the connections of many
clients, so those that the operator trusts are bounded by the total alone.

Silent strangers must not close a listener. Where a limit is reached, a newcomer takes the place of the connection that
has been idle for longest: one that is not authenticated, and whose next byte the server waits for. A newcomer is
refused only when there is none. From a network that is full it replaces one of that network, so whoever opens many
connections loses their own. A stranger never replaces an idle connection from the address of a known client: one that
has authenticated in this process, or a trusted proxy.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import Final

from postroad.concurrency import lru
from postroad.model import login_throttle
from postroad.network import listener

# A look at a connection takes a fraction of a microsecond, and those in use are put last: the next newcomer looks at
# others.
MAX_EXAMINED: Final = 1_000
# The networks that authenticated last; about 2 MB.
MAX_KNOWN: Final = 10_000

# The networks around an address, and how many times the limit of an address each has.
_Networks = tuple[tuple[str, int], ...]
# Connections in the order in which they became idle when they were last looked at, with that time; infinite if in use.
_Group = dict[listener.Connection, float]


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
        # With their networks, none if exempt. One that was evicted stays until it is closed, but is not counted.
        self._open: dict[listener.Connection, _Networks] = {}
        self._counted: _Group = {}
        self._by_network: dict[str, _Group] = {}
        self._known: lru.LruCache[str, bool] = lru.LruCache(MAX_KNOWN)

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[listener.Connection]:
        return iter(self._open)

    def __contains__(self, connection: object) -> bool:
        return connection in self._open

    def enter(self, connection: listener.Connection, address: str) -> Excess | None:
        """Count a connection, and evict idle ones where it exceeds a limit; the limit where that is not possible."""
        is_exempt = self._is_exempt is not None and self._is_exempt(address)
        networks = self._open[connection] = () if is_exempt else login_throttle.networks_around(address)
        idle_since = math.inf if connection.idle_since is None else connection.idle_since
        self._counted[connection] = idle_since
        for network, _ in networks:
            self._by_network.setdefault(network, {})[connection] = idle_since
        # The smallest first: what is evicted there is room everywhere.
        for network, times in networks:
            group = self._by_network[network]
            if len(group) > self._per_address * times and not self._evict_oldest(group, connection):
                return Excess.PER_ADDRESS
        if len(self._counted) > self._total and not self._evict_oldest(self._counted, connection):
            return Excess.TOTAL
        return None

    def leave(self, connection: listener.Connection) -> bool:
        """Stop counting it; whether it was open."""
        if connection not in self._open:
            return False
        self._uncount(connection)
        del self._open[connection]
        return True

    def note_authenticated(self, connection: listener.Connection) -> None:
        """Remember the client of an open connection as known."""
        for network, _ in self._open[connection][:1]:
            self._known.put(network, True)  # noqa: FBT003 - a set

    def _evict_oldest(self, group: _Group, newcomer: listener.Connection) -> bool:
        """Evict the connection of the group that has been idle for longest; whether there is one."""
        may_replace_known = self._is_known(newcomer)
        oldest: listener.Connection | None = None
        rank = (True, math.inf)
        others: list[tuple[float, int, listener.Connection]] = []
        for place, (connection, since) in enumerate(itertools.islice(group.items(), MAX_EXAMINED)):
            idle_since = connection.idle_since
            if idle_since is not None and connection is not newcomer:
                is_known = self._is_known(connection)
                if (is_known, idle_since) < rank and (may_replace_known or not is_known):
                    oldest, rank = connection, (is_known, idle_since)
                if oldest is connection and since == idle_since and not is_known:
                    # Not used since it was put here: those behind it are younger.
                    break
            others.append((math.inf if idle_since is None else idle_since, place, connection))
        # Start with unexamined connections next time.
        for idle_since, _, connection in sorted(others):
            del group[connection]
            group[connection] = idle_since
        if oldest is None:
            return False
        self._uncount(oldest)
        oldest.evict()
        return True

    def _uncount(self, connection: listener.Connection) -> None:
        if self._counted.pop(connection, None) is None:
            return
        for network, _ in self._open[connection]:
            group = self._by_network[network]
            del group[connection]
            if not group:
                del self._by_network[network]

    def _is_known(self, connection: listener.Connection) -> bool:
        networks = self._open[connection]
        return not networks or self._known.get(networks[0][0]) is not None
