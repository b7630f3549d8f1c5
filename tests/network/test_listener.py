"""What all listeners do, shown with the smallest connection; what each adds is tested with its own."""

import asyncio
import contextlib
import socket
from dataclasses import dataclass, field

import pytest

from postroad.network import listener as network_listener
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
