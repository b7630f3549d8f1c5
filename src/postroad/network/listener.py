"""The common part of all listeners: bind, accept, sweep once a second, graceful shutdown.

A listener runs inside the caller's event loop and does not touch signals. Draining means: no connection is kept after
the next response to a request or a message. Stopping means: no new connections, idle ones closed, work in progress
finished within the grace period, the rest cancelled and aborted.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, Protocol

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
    taken = [(one.family, one.getsockname()) for one in first]
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
    for one in bound:
        one.close()


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
        """The host and the port that are bound."""
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
        for one in bound:
            self._servers.append(await loop.create_server(self._make_connection, sock=one, backlog=BACKLOG))
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
