"""The common part of all listeners: bind, accept, bound the open connections, sweep once a second, stop gracefully."""

import asyncio
import contextlib
import heapq
import itertools
import math
import socket
import time
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from enum import Enum, auto
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from postroad.concurrency import caches
from postroad.model.delivery import fair_shares
from postroad.model.people import login_rules

SWEEP_SECONDS: Final = 1.0
# For clients that reconnect at once after a restart.
BACKLOG: Final = 2048
# Cancelled tasks and aborted transports only have to report their end.
ABORT_SECONDS: Final = 1.0
# Accepting, creating the transport and calling the protocol are a round each in asyncio.
ACCEPT_ROUNDS: Final = 5


# What one process listens with.
BoundSockets = Sequence[socket.socket]
Address = tuple[int, tuple[Any, ...]]


def bind(host: str, port: int, *, processes: int = 1) -> Sequence[BoundSockets]:
    """Claim an address, under all families that its name has; port 0 takes a free one. Raises OSError.

    Each of several processes gets sockets of its own, over which the system spreads connections evenly. With one shared
    socket, the process that wakes first would take them all.
    """
    found = addresses(host, port)
    if processes == 1:
        return [_bind(found)]
    if port:
        # SO_REUSEPORT would also share the address with an unrelated process: check that it is free.
        _close(_bind(found))
    first = _bind(found, shared=True)
    taken = [(listening.family, listening.getsockname()) for listening in first]
    return [first, *(_bind(taken, shared=True) for _ in range(processes - 1))]


def addresses(host: str, port: int) -> Sequence[Address]:
    """What an address means, under all families that its name has. Raises OSError."""
    if host == "::" and socket.has_dualstack_ipv6():
        return [(socket.AF_INET6, (host, port))]
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list(dict.fromkeys((family, where) for family, _, _, _, where in found))


def any_host() -> str:
    """All addresses of this host, as a listen address: of both families, unless the kernel has no IPv6."""
    return "[::]" if socket.has_dualstack_ipv6() else "0.0.0.0"  # noqa: S104 - for listeners that others connect to


def _bind(addresses: Sequence[Address], *, shared: bool = False) -> BoundSockets:
    bound: list[socket.socket] = []
    try:
        for family, where in addresses:
            # By default "::" would not accept IPv4.
            is_dual = where[0] == "::" and socket.has_dualstack_ipv6()
            bound.append(
                socket.create_server(
                    where[:2], family=family, backlog=BACKLOG, reuse_port=shared, dualstack_ipv6=is_dual
                )
            )
    except OSError:
        _close(bound)
        raise
    return bound


def _close(bound: BoundSockets) -> None:
    for listening in bound:
        listening.close()


def address(bound: BoundSockets) -> tuple[str, int]:
    """The host and the port of the first."""
    host, port = bound[0].getsockname()[:2]
    return str(host), int(port)


def peer_address(transport: asyncio.BaseTransport) -> str:
    """The client's address; an IPv4-mapped one is written as IPv4 (RFC 4291 section 2.5.5.2)."""
    name = transport.get_extra_info("peername")
    address = str(name[0]) if isinstance(name, tuple) else ""
    return address.removeprefix("::ffff:") if "." in address else address


class Connection(Protocol):
    """One connection, which adds itself to those of its listener and takes itself off."""

    transport: asyncio.Transport

    @property
    def idle_since(self) -> float | None:
        """Since when the client could have made progress and has not; None while it is served."""

    def evict(self) -> None:
        """Close at once, to make room for another."""

    def shutdown(self) -> None:
        """Close as soon as nothing is in progress."""

    def sweep(self, now: float) -> None:
        """End what is overdue."""


class Cancellable(Protocol):
    """Work in progress."""

    def cancel(self) -> object:
        """Cancel it."""


class ListenerState(Protocol):
    """State shared by the connections."""

    # Set before the listener stops: connections end after the next response.
    is_draining: bool
    # Exists while the listener stops; set when a connection or some work has ended.
    changed: asyncio.Event | None


class Listener:
    """One listening address. The connections maintain the collections, which change during iteration."""

    def __init__(
        self,
        make_connection: Callable[[], asyncio.Protocol],
        *,
        shared: ListenerState,
        connections: Collection[Connection],
        working: Collection[Cancellable],
        sweep_seconds: float,
    ) -> None:
        self._make_connection = make_connection
        self._state = shared
        self._connections = connections
        self._working = working
        self._sweep_seconds = sweep_seconds
        self._servers: list[asyncio.Server] = []
        self._address: tuple[str, int] | None = None
        self._ticker: asyncio.TimerHandle | None = None

    @property
    def address(self) -> tuple[str, int]:
        if self._address is None:
            raise RuntimeError("the listener is not started")
        return self._address

    async def start(self, host: str, port: int) -> None:
        """Bind and accept; port 0 takes a free one."""
        (bound,) = await asyncio.to_thread(bind, host, port)
        await self.serve(bound)

    async def serve(self, bound: BoundSockets) -> None:
        """Accept at addresses that are bound already, perhaps by the process that started this one."""
        loop = asyncio.get_running_loop()
        self._address = address(bound)
        for listening in bound:
            self._servers.append(await loop.create_server(self._make_connection, sock=listening, backlog=BACKLOG))
        self._tick()

    def drain(self) -> None:
        """Let clients know with the next response that their connection ends."""
        self._state.is_draining = True

    async def stop(self, *, grace_seconds: float) -> None:
        """Finish what is under way within the grace time, and close everything."""
        if not self._servers:
            return
        self.drain()
        changed = self._state.changed = asyncio.Event()
        for server in self._servers:
            server.close()
        # Within the next rounds of the event loop, a connection that was accepted just before is announced, and what
        # has arrived on the others is read.
        for _ in range(ACCEPT_ROUNDS):
            await asyncio.sleep(0)
        self._shut_down_connections()
        if not await self._wait_until_empty(changed, grace_seconds, self._working, self._connections):
            await self._abort(changed)
        if self._ticker is not None:
            self._ticker.cancel()

    def on_sweep(self) -> None:
        """What else is done once a second."""

    def _shut_down_connections(self) -> None:
        for connection in list(self._connections):
            connection.shutdown()

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        self._ticker = loop.call_later(self._sweep_seconds, self._tick)
        self.on_sweep()
        now = loop.time()
        for connection in list(self._connections):
            connection.sweep(now)
        if self._state.changed is not None:
            # For one that was accepted just before the listening socket closed.
            self._shut_down_connections()

    async def _wait_until_empty(self, changed: asyncio.Event, seconds: float, *awaited: Collection[object]) -> bool:
        """Wait until these are empty, for so long; whether they are."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while any(awaited):
                    changed.clear()
                    await changed.wait()
        return not any(awaited)

    async def _abort(self, changed: asyncio.Event) -> None:
        for work in list(self._working):
            work.cancel()
        await self._wait_until_empty(changed, ABORT_SECONDS, self._working)
        for connection in list(self._connections):
            connection.transport.abort()
        await self._wait_until_empty(changed, ABORT_SECONDS, self._connections)


# The open connections of a listener: how many there may be, and how many of them from one address or network.
#
# A client on IPv6 has a whole network, and a hosting customer often addresses of one IPv4 /24, so the networks around
# an address count too, each with a larger limit (`model/people/login_rules.py`). Reverse proxies bring the
# connections of
# many clients, so those that the operator trusts are bounded by the total alone.
#
# Nobody must close a listener by holding connections. A connection that has authenticated counts for its account, and
# so does one from an address that an account has authenticated from in this process: accounts have fair shares of the
# listener (`model/delivery/fair_shares.py`). All others are strangers, who count for the largest network around their
# address.
#
# Where a limit is reached, a newcomer takes the place of an idle connection, and is refused only when there is none.
# From a network that is full it replaces the oldest of that network, so whoever opens many connections loses their own.
# In a full listener it replaces, in this order:
#
# 1. the oldest stranger of the network that has most of them, 2. the only stranger of a network, unless it is so young
# that its next bytes may be on their way, 3. the oldest connection of the account that has most, if that is more than
# its share. A newcomer from the address of an account or from a proxy may take any of them, but not the only session of
# an account.
#
# Where the account of a session has its share already, it replaces its own or those of an account that has more.

# A look at a connection takes a fraction of a microsecond, and those in use are put last: the next newcomer looks at
# others.
MAX_EXAMINED: Final = 64
# The networks or accounts with most connections that are looked at, and the connections of each.
MAX_PARTIES: Final = 4
MAX_OF_PARTY: Final = MAX_EXAMINED // MAX_PARTIES
# The only stranger of a network keeps its place for this long: several round trips to anywhere.
YOUNG_SECONDS: Final = 1.0
# The networks that authenticated last; about 2 MB.
MAX_KNOWN: Final = 10_000

# The networks around an address, and how many times the limit of an address each has.
_Networks = tuple[tuple[str, int], ...]
# Connections in the order in which they became idle when they were last looked at, with that time; infinite if in use.
_Group = dict[Connection, float]


_Party = TypeVar("_Party", bound=Hashable)


class Excess(Enum):
    """The limit that a connection exceeds."""

    TOTAL = auto()
    PER_ADDRESS = auto()
    PER_ACCOUNT = auto()


class _Place(msgspec.Struct):
    """What an open connection counts for."""

    # None if exempt.
    networks: _Networks
    account: Hashable | None = None
    # It has authenticated, and is worth more than another connection from its address.
    is_session: bool = False
    # One that was evicted stays open until it is closed, but is not counted.
    is_counted: bool = True

    @property
    def party(self) -> tuple[Hashable, bool]:
        """Sessions and other connections of an account are told apart: its only session is kept."""
        return self.account, self.is_session


_Allowed = Callable[[_Place], bool]


class _Parties(Generic[_Party]):
    """Connections by account or by network, and who has most."""

    def __init__(self) -> None:
        self.groups: dict[_Party, _Group] = {}
        self._by_size: dict[int, dict[_Party, None]] = {}

    def add(self, party: _Party, connection: Connection, idle_since: float) -> None:
        group = self.groups.setdefault(party, {})
        self._move(party, len(group), len(group) + 1)
        group[connection] = idle_since

    def remove(self, party: _Party, connection: Connection) -> None:
        group = self.groups[party]
        self._move(party, len(group), len(group) - 1)
        del group[connection]
        if not group:
            del self.groups[party]

    def largest(self) -> list[_Party]:
        """A few parties, those with most connections first; of equals, others the next time."""
        sizes = heapq.nlargest(MAX_PARTIES, self._by_size)
        alike = itertools.chain.from_iterable(self._by_size[size] for size in sizes)
        found = list(itertools.islice(alike, MAX_PARTIES))
        for party in found:
            self._move(party, len(self.groups[party]), len(self.groups[party]))
        return found

    def _move(self, party: _Party, old: int, new: int) -> None:
        if old:
            del self._by_size[old][party]
            if not self._by_size[old]:
                del self._by_size[old]
        if new:
            self._by_size.setdefault(new, {})[party] = None


class OpenConnections:
    """A collection that connections enter and leave by themselves."""

    def __init__(
        self,
        *,
        total: int,
        per_address: int,
        is_exempt: Callable[[str], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._total = total
        self._per_address = per_address
        self._is_exempt = is_exempt
        self._clock = clock
        self._open: dict[Connection, _Place] = {}
        self._counted = 0
        self._by_network: dict[str, _Group] = {}
        # Each connection that is counted is in one of these: of an account, a stranger, or exempt.
        self._accounts: _Parties[tuple[Hashable, bool]] = _Parties()
        self._shares = fair_shares.FairShares(total)
        self._networks: _Parties[str] = _Parties()
        self._strangers: _Group = {}
        self._exempt: _Group = {}
        # The account that authenticated last from a network.
        self._known: caches.LruCache[str, Hashable] = caches.LruCache(MAX_KNOWN)

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Connection]:
        return iter(self._open)

    def __contains__(self, connection: object) -> bool:
        return connection in self._open

    def enter(self, connection: Connection, address: str) -> Excess | None:
        """Count a connection, and evict idle ones where it exceeds a limit; the limit where that is not possible."""
        is_exempt = self._is_exempt is not None and self._is_exempt(address)
        networks = () if is_exempt else login_rules.networks_around(address)
        place = self._open[connection] = _Place(networks)
        self._counted += 1
        idle_since = _idle_since(connection)
        for network, _ in networks:
            self._by_network.setdefault(network, {})[connection] = idle_since
        account = self._known.get(networks[0][0]) if networks else None
        # An account with more than its share is a stranger.
        if account is not None and self._shares.take((fair_shares.Party(account),)):
            place.account = account
        self._enter_party(connection, place)
        # The smallest first: what is evicted there is room everywhere.
        for network, times in networks:
            group = self._by_network[network]
            if len(group) > self._per_address * times and not self._make_room_in_network(group, connection, place):
                return Excess.PER_ADDRESS
        if self._counted > self._total and not self._make_room(connection, place):
            return Excess.TOTAL
        return None

    def leave(self, connection: Connection) -> bool:
        """Stop counting it; whether it was open."""
        if connection not in self._open:
            return False
        self._uncount(connection)
        del self._open[connection]
        return True

    def note_account(self, connection: Connection, account: Hashable, *, is_session: bool = False) -> bool:
        """Count an open connection for its account, and remember its address; False if the account has its share.

        A session stays authenticated: a stranger replaces it only if its account has others.
        """
        place = self._open[connection]
        if not place.is_counted or not place.networks:
            return True
        party = fair_shares.Party(account)
        if place.account != account and not self._shares.take((party,)):
            if not self._make_room_for_account(connection, party):
                return False
            self._shares.add((party,))
        self._leave_party(connection, place)
        if place.account not in (None, account):
            self._shares.give_back((fair_shares.Party(place.account),))
        place.account, place.is_session = account, is_session
        self._enter_party(connection, place)
        self._known.put(place.networks[0][0], account)
        return True

    # Who makes room.

    def _make_room_in_network(self, group: _Group, newcomer: Connection, its_place: _Place) -> bool:
        return self._evict_oldest(group, newcomer, _is_stranger) or (
            its_place.account is not None and self._evict_oldest(group, newcomer, lambda place: not place.is_session)
        )

    def _make_room(self, newcomer: Connection, its_place: _Place) -> bool:
        is_stranger = _is_stranger(its_place)
        return (
            self._make_room_of_networks(newcomer)
            or self._evict_oldest(
                self._strangers,
                newcomer,
                _is_anything,
                before=self._clock() - YOUNG_SECONDS if is_stranger else math.inf,
            )
            or self._make_room_of_accounts(newcomer, is_stranger=is_stranger)
            or (not is_stranger and self._evict_oldest(self._exempt, newcomer, _is_anything))
        )

    def _make_room_of_networks(self, newcomer: Connection) -> bool:
        parties = self._networks
        for network in parties.largest():
            group = parties.groups[network]
            # Each of them has at least an average number, and more than one.
            if len(group) == 1 or len(group) * len(parties.groups) < len(self._strangers):
                break
            if self._evict_oldest(group, newcomer, _is_anything, count=MAX_OF_PARTY):
                return True
        return False

    def _make_room_of_accounts(self, newcomer: Connection, *, is_stranger: bool) -> bool:
        for account, is_session in self._accounts.largest():
            group = self._accounts.groups[account, is_session]
            if is_stranger and self._shares.has_share(fair_shares.Party(account)):
                continue
            is_only = is_session and len(group) == 1
            if not is_only and self._evict_oldest(group, newcomer, _is_anything, count=MAX_OF_PARTY):
                return True
        return False

    def _make_room_for_account(self, newcomer: Connection, party: fair_shares.Party) -> bool:
        held = self._shares.held(party)
        for most in self._accounts.largest():
            group = self._accounts.groups[most]
            if len(group) > held + 1 and self._evict_oldest(group, newcomer, _is_anything, count=MAX_OF_PARTY):
                return True
        groups = (self._accounts.groups.get((party.name, is_session), {}) for is_session in (False, True))
        return any(self._evict_oldest(own, newcomer, _is_anything, count=MAX_OF_PARTY) for own in groups)

    def _evict_oldest(
        self,
        group: _Group,
        newcomer: Connection,
        allowed: _Allowed,
        *,
        before: float = math.inf,
        count: int = MAX_EXAMINED,
    ) -> bool:
        """Evict the connection of the group that has been idle for longest; whether there is one."""
        oldest: Connection | None = None
        least = before
        others: list[tuple[float, int, Connection]] = []
        for place, (connection, since) in enumerate(itertools.islice(group.items(), count)):
            idle_since = _idle_since(connection)
            if idle_since < least and connection is not newcomer and allowed(self._open[connection]):
                oldest, least = connection, idle_since
                if since == idle_since:
                    # Not used since it was put here: those behind it are younger.
                    break
            others.append((idle_since, place, connection))
        # Start with unexamined connections next time.
        for idle_since, _, connection in sorted(others):
            del group[connection]
            group[connection] = idle_since
        if oldest is None:
            return False
        self._uncount(oldest)
        oldest.evict()
        return True

    # What is counted.

    def _enter_party(self, connection: Connection, place: _Place) -> None:
        idle_since = _idle_since(connection)
        if place.account is not None:
            self._accounts.add(place.party, connection, idle_since)
        elif place.networks:
            self._networks.add(place.networks[-1][0], connection, idle_since)
            self._strangers[connection] = idle_since
        else:
            self._exempt[connection] = idle_since

    def _leave_party(self, connection: Connection, place: _Place) -> None:
        if place.account is not None:
            self._accounts.remove(place.party, connection)
        elif place.networks:
            self._networks.remove(place.networks[-1][0], connection)
            del self._strangers[connection]
        else:
            del self._exempt[connection]

    def _uncount(self, connection: Connection) -> None:
        place = self._open[connection]
        if not place.is_counted:
            return
        place.is_counted = False
        self._counted -= 1
        self._leave_party(connection, place)
        if place.account is not None:
            self._shares.give_back((fair_shares.Party(place.account),))
        for network, _ in place.networks:
            group = self._by_network[network]
            del group[connection]
            if not group:
                del self._by_network[network]


def _idle_since(connection: Connection) -> float:
    idle_since = connection.idle_since
    return math.inf if idle_since is None else idle_since


def _is_anything(place: _Place) -> bool:  # noqa: ARG001 - one of several conditions
    return True


def _is_stranger(place: _Place) -> bool:
    return place.account is None and bool(place.networks)
