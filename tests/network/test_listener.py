"""What all listeners do, shown with the smallest connection; what each adds is tested with its own."""

import asyncio
import contextlib
import socket
from dataclasses import dataclass, field

import pytest

from postroad.network import listener
from postroad.network import listener as network_listener
from postroad.network.listener import Excess
from tests.network.recording_listener import TIMEOUT_SECONDS, connect


@dataclass(slots=True)
class Server:
    """What the connections share, and what was done to them."""

    connections: set[network_listener.Connection] = field(default_factory=set)
    working: set[asyncio.Task[None]] = field(default_factory=set)
    is_draining: bool = False
    changed: asyncio.Event | None = None
    sweeps: int = 0


class Connection(asyncio.Protocol):
    """Stays until it is cut; `shutdown` is nothing to it."""

    transport: asyncio.Transport
    idle_since = None

    def __init__(self, room: Server) -> None:
        self._room = room

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport
        self._room.connections.add(self)
        transport.write(b"220 \r\n")

    def connection_lost(self, exc: Exception | None) -> None:
        self._room.connections.discard(self)
        if self._room.changed is not None:
            self._room.changed.set()

    def evict(self) -> None:
        pass

    def shutdown(self) -> None:
        pass

    def sweep(self, now: float) -> None:
        self._room.sweeps += 1


def running_server(room: Server) -> network_listener.Listener:
    return network_listener.Listener(
        lambda: Connection(room), shared=room, connections=room.connections, working=room.working, sweep_seconds=0.01
    )


async def test_connections_are_swept_again_and_again() -> None:
    room = Server()
    listener = running_server(room)
    await listener.start("127.0.0.1", 0)
    async with connect(listener.address) as client, asyncio.timeout(TIMEOUT_SECONDS):
        await client.reply()
        while room.sweeps < 3:
            await asyncio.sleep(0)
    await listener.stop(grace_seconds=TIMEOUT_SECONDS)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this system has no socket for both")
@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
async def test_all_addresses_are_those_of_ipv4_and_of_ipv6(address: str) -> None:
    listener = running_server(Server())
    await listener.start("::", 0)
    host, port = listener.address
    assert host == "::"
    async with connect((address, port)) as client:
        assert await client.reply() == b"220 "
    await listener.stop(grace_seconds=0)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this system has no socket for both")
async def test_an_address_that_is_taken_cannot_be_had_by_all_addresses() -> None:
    first, second = running_server(Server()), running_server(Server())
    await first.start("::", 0)
    with pytest.raises(OSError, match="in use"):
        await second.start(*first.address)
    await first.stop(grace_seconds=0)


async def test_after_the_grace_time_work_is_cancelled_before_connections_are_cut() -> None:
    room = Server()
    listener = running_server(room)
    await listener.start("127.0.0.1", 0)
    async with connect(listener.address) as client:
        await client.reply()

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                for guest in room.connections:
                    guest.transport.write(b"421 \r\n")

        def ended(task: asyncio.Task[None]) -> None:
            room.working.discard(task)
            if room.changed is not None:
                room.changed.set()

        task = asyncio.create_task(work())
        task.add_done_callback(ended)
        room.working.add(task)
        await asyncio.sleep(0)
        await listener.stop(grace_seconds=0)
        assert await client.rest() == b"421 \r\n"
    assert not room.connections


def test_connections_are_spread_over_the_processes_that_share_an_address() -> None:
    first, second = network_listener.bind("127.0.0.1", 0, processes=2)
    with first[0], second[0]:
        assert network_listener.address(first) == network_listener.address(second)
        with contextlib.ExitStack() as clients:
            for _ in range(64):
                clients.enter_context(
                    socket.create_connection(network_listener.address(first), timeout=TIMEOUT_SECONDS)
                )
            counts = [accepted(one[0]) for one in (first, second)]
    assert sum(counts) == 64
    assert min(counts) > 0


def accepted(listener: socket.socket) -> int:
    """How many connections wait at a socket; they are closed."""
    listener.settimeout(0)
    count = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            listener.accept()[0].close()
            count += 1
    return count


def test_processes_do_not_share_an_address_with_strangers() -> None:
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as stranger, pytest.raises(OSError, match="in use"):
        network_listener.bind("127.0.0.1", stranger.getsockname()[1], processes=2)


def test_an_address_that_cannot_be_had_in_one_family_is_not_held_in_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = [(socket.AF_INET6, 0, 0, "", ("::1", port, 0, 0)), (socket.AF_INET, 0, 0, "", ("127.0.0.1", port))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        with pytest.raises(OSError, match="in use"):
            network_listener.bind("localhost", port)
        with socket.create_server(("::1", port), family=socket.AF_INET6):
            pass


# Connections are counted in all and by the networks around their address; idle strangers make room for newcomers.


class Counted:
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
    counted = listener.OpenConnections(total=9, per_address=1)
    connections = [Counted(), Counted()]
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
    counted = listener.OpenConnections(total=1_000, per_address=10)
    results = [counted.enter(Counted(), pattern.format(place)) for place in range(100)]
    assert results == [None] * admitted + [Excess.PER_ADDRESS] * (100 - admitted)


def test_an_exempt_address_counts_only_in_the_total() -> None:
    counted = listener.OpenConnections(total=5, per_address=1, is_exempt=lambda one: one == "192.0.2.1")
    for _ in range(5):
        assert counted.enter(Counted(), "192.0.2.1") is None
    assert counted.enter(Counted(), "192.0.2.1") == Excess.TOTAL
    others = listener.OpenConnections(total=99, per_address=1, is_exempt=lambda one: one == "192.0.2.1")
    for _ in range(50):
        others.enter(Counted(), "192.0.2.1")
    assert others.enter(Counted(), "192.0.2.2") is None, "a proxy uses up nothing of the network around it"


def test_the_connection_that_is_idle_for_longest_makes_room() -> None:
    counted = listener.OpenConnections(total=4, per_address=9)
    served, first, second, third = (Counted(since) for since in (None, 2.0, 3.0, 4.0))
    for place, connection in enumerate((served, first, second, third)):
        assert counted.enter(connection, f"198.51.{place}.1") is None
    # It has been used since it came.
    first.idle_since = 5.0
    assert counted.enter(Counted(6.0), "203.0.113.1") is None
    assert [one.is_evicted for one in (served, first, second, third)] == [False, False, True, False]
    assert second in counted, "it is closed by and by"
    assert counted.enter(Counted(7.0), "203.0.114.1") is None
    assert [one.is_evicted for one in (served, first, third)] == [False, False, True]
    assert counted.leave(second)
    assert counted.leave(third)
    assert len(counted) == 4


def test_connections_that_were_all_used_make_room_by_their_last_use() -> None:
    counted = listener.OpenConnections(total=3, per_address=9)
    used = [Counted(float(since)) for since in range(1, 4)]
    for connection in used:
        counted.enter(connection, "192.0.2.1")
    for connection, since in zip(used, (9.0, 7.0, 8.0), strict=True):
        connection.idle_since = since
    assert counted.enter(Counted(10.0), "192.0.2.1") is None
    assert [one.is_evicted for one in used] == [False, True, False]


def test_a_newcomer_is_refused_while_all_others_are_served() -> None:
    counted = listener.OpenConnections(total=2, per_address=9)
    for _ in range(2):
        counted.enter(Counted(), "192.0.2.1")
    assert counted.enter(Counted(1.0), "192.0.2.2") == Excess.TOTAL


def test_who_opens_many_connections_loses_their_own() -> None:
    counted = listener.OpenConnections(total=99, per_address=2)
    other = Counted(1.0)
    counted.enter(other, "203.0.113.1")
    many = [Counted(float(since)) for since in range(2, 9)]
    for connection in many:
        assert counted.enter(connection, "192.0.2.1") is None
    assert not other.is_evicted
    assert [one.is_evicted for one in many] == [True] * 5 + [False] * 2


def test_strangers_do_not_replace_known_clients_and_known_clients_replace_strangers() -> None:
    counted = listener.OpenConnections(total=2, per_address=9)
    authenticated = Counted()
    counted.enter(authenticated, "192.0.2.1")
    assert counted.note_account(authenticated, "acc_1")
    counted.leave(authenticated)
    known = Counted(1.0)
    counted.enter(known, "192.0.2.1")
    strangers = [Counted(float(since)) for since in range(2, 9)]
    for place, stranger in enumerate(strangers):
        assert counted.enter(stranger, f"203.0.{place}.1") is None
    assert not known.is_evicted
    assert [one.is_evicted for one in strangers] == [True] * 6 + [False]
    assert counted.enter(Counted(10.0), "192.0.2.1") is None
    assert not known.is_evicted
    assert strangers[-1].is_evicted
    assert counted.enter(Counted(11.0), "203.0.99.1") is None
    assert known.is_evicted, "one account has no right to all connections"


def test_the_network_with_most_connections_makes_room_and_the_only_one_of_a_network_last() -> None:
    counted = listener.OpenConnections(total=8, per_address=9, clock=lambda: 100.0)
    alone, pair = Counted(1.0), [Counted(2.0), Counted(3.0)]
    counted.enter(alone, "192.0.2.1")
    for connection in pair:
        counted.enter(connection, "198.51.100.1")
    many = [Counted(99.9 + since / 1_000) for since in range(50)]
    for place, connection in enumerate(many):
        assert counted.enter(connection, f"203.0.113.{place}") is None
    assert not any(one.is_evicted for one in (alone, *pair)), "however much older they are"
    assert [one.is_evicted for one in many] == [True] * 45 + [False] * 5


def test_the_only_connection_of_a_network_has_time_for_its_next_round_trip() -> None:
    now = 10.0
    counted = listener.OpenConnections(total=3, per_address=9, clock=lambda: now)
    young = [Counted(9.5 + place / 10) for place in range(3)]
    for place, connection in enumerate(young):
        assert counted.enter(connection, f"198.51.{place}.1") is None
    late = Counted(now)
    assert counted.enter(late, "203.0.113.1") == Excess.TOTAL
    counted.leave(late)
    now = 10.55
    assert counted.enter(Counted(now), "203.0.114.1") is None
    assert [one.is_evicted for one in young] == [True, False, False]


def test_accounts_share_the_listener_and_the_one_with_most_makes_room() -> None:
    counted = listener.OpenConnections(total=100, per_address=100)
    greedy = [Counted(float(place)) for place in range(200)]
    for place, connection in enumerate(greedy):
        assert counted.enter(connection, f"198.51.{place}.1") is None
        assert counted.note_account(connection, "acc_greedy", is_session=True), "an old one of its own makes room"
    assert [one.is_evicted for one in greedy] == [True] * 120 + [False] * 80
    others = [Counted(1_000.0 + place) for place in range(60)]
    for place, connection in enumerate(others):
        assert counted.enter(connection, f"203.0.{place}.1") is None
        assert counted.note_account(connection, f"acc_{place % 2}", is_session=True)
    assert not any(one.is_evicted for one in others)
    assert sum(not one.is_evicted for one in greedy) < 60


def test_an_account_in_the_middle_of_its_transactions_gets_its_share_and_no_more() -> None:
    counted = listener.OpenConnections(total=100, per_address=100)
    results = []
    for place in range(90):
        connection = Counted()
        assert counted.enter(connection, f"198.51.{place}.1") is None
        results.append(counted.note_account(connection, "acc_greedy", is_session=True))
        if not results[-1]:
            counted.leave(connection)
    assert results == [True] * 80 + [False] * 10
    victim = Counted(1.0)
    assert counted.enter(victim, "203.0.113.1") is None
    assert counted.note_account(victim, "acc_victim", is_session=True)


def test_the_only_session_of_an_account_is_never_replaced() -> None:
    counted = listener.OpenConnections(total=5, per_address=9)
    only = [Counted(1.0), Counted(2.0)]
    several = [Counted(3.0), Counted(4.0), Counted(5.0)]
    for place, connection in enumerate((*only, *several)):
        counted.enter(connection, f"198.51.{place}.1")
        assert counted.note_account(connection, f"acc_{min(place, 2)}", is_session=True)
    strangers = [Counted(6.0 + place) for place in range(4)]
    for place, stranger in enumerate(strangers):
        assert counted.enter(stranger, f"203.0.{place}.1") is None
    assert [one.is_evicted for one in (*only, *several)] == [False, False, True, False, False]
    assert [one.is_evicted for one in strangers] == [True, True, True, False]


def test_a_newcomer_looks_at_few_and_the_next_at_others() -> None:
    counted = listener.OpenConnections(total=1_000, per_address=9)
    looks = 0

    class Busy(Counted):
        @property
        def idle_since(self) -> float | None:
            nonlocal looks
            looks += 1
            return None

        @idle_since.setter
        def idle_since(self, _: float | None) -> None:
            """Always in use."""

    for place in range(999):
        counted.enter(Busy(), f"198.{place // 250}.{place % 250}.1")
    idle = Counted(1.0)
    counted.enter(idle, "203.0.113.1")
    looks = newcomers = 0
    while not idle.is_evicted:
        newcomer = Counted(2.0)
        counted.enter(newcomer, f"192.0.{newcomers}.1")
        counted.leave(newcomer)
        newcomers += 1
        assert looks <= newcomers * listener.MAX_EXAMINED
    assert newcomers <= 1_000 / listener.MAX_EXAMINED + 2
