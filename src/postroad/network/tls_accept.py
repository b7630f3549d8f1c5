"""A connection with implicit TLS (RFC 8314, RFC 9110 section 4.2.2), from accept to the end of its handshake.

asyncio does not report such a connection before its handshake has succeeded, so half-open ones would have no limit.
Here it is accepted without TLS, counted, and its socket passed on to a handshake with a timeout. A connection over the
limit, one for which no second file descriptor is free, and every one while there is no certificate is closed without a
reply: that would need a handshake.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from typing import Final

import msgspec

from postroad.network import alpn_challenges, listener, open_connections

# How long to wait for the close_notify of the client.
SHUTDOWN_SECONDS: Final = 2.0


class Handshakes(msgspec.Struct, frozen=True):
    """What the handshakes of a listener share with its sessions.

    `tls` is called for each handshake, because the certificate may be renewed. A session calls the argument of
    `make_session` first of all, to release the slot that the handshake held.
    """

    tls: Callable[[], ssl.SSLContext | None]
    make_session: Callable[[Callable[[], None]], asyncio.Protocol]
    connections: open_connections.OpenConnections
    state: listener.ListenerState
    seconds: float
    # Proves the names of this host to a certificate authority.
    challenges: alpn_challenges.AlpnChallenges | None = None


class TlsAccept(asyncio.Protocol):
    """A handshake; it is in `connections` until the session replaces it."""

    transport: asyncio.Transport
    _socket: socket.socket

    def __init__(self, shared: Handshakes) -> None:
        self._shared = shared
        self.idle_since = asyncio.get_running_loop().time()
        self._handshake: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin the handshake on the same socket. The plain transport is closed before it reads a byte."""
        self.transport = transport
        is_admitted = self._shared.connections.enter(self, listener.peer_address(transport)) is None
        if self._can_begin() and is_admitted and self._shared.state.changed is None:
            with contextlib.suppress(OSError):
                self._socket = transport.get_extra_info("socket").dup()
                self._begin()
        transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the cause does not matter
        """The plain transport is closed; without a handshake the connection has ended."""
        if self._handshake is None:
            self.leave()

    def leave(self) -> None:
        """Stop counting: the session counts instead, or the connection has ended."""
        if self._shared.connections.leave(self) and self._shared.state.changed is not None:
            self._shared.state.changed.set()

    def evict(self) -> None:
        """Cancel the handshake."""
        self.shutdown()

    def shutdown(self) -> None:
        """Cancel the handshake: no work is in progress."""
        if self._handshake is not None:
            self._handshake.cancel()

    def sweep(self, now: float) -> None:
        """Nothing to do: the handshake has its own timeout."""

    def _can_begin(self) -> bool:
        challenges = self._shared.challenges
        return self._shared.tls() is not None or (challenges is not None and challenges.is_pending)

    def _begin(self) -> None:
        self._handshake = asyncio.get_running_loop().create_task(self._run_handshake())
        self._handshake.add_done_callback(self._ended)

    async def _run_handshake(self) -> None:
        tls, challenges = self._shared.tls(), self._shared.challenges
        if challenges is not None and challenges.is_pending:
            async with asyncio.timeout(self._shared.seconds):
                if await alpn_challenges.is_asked_for(self._socket):
                    tls = challenges.context
        if tls is None:
            raise ConnectionAbortedError("there is no certificate yet")
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: self._shared.make_session(self.leave),
            self._socket,
            ssl=tls,
            ssl_handshake_timeout=self._shared.seconds,
            ssl_shutdown_timeout=SHUTDOWN_SECONDS,
        )

    def _ended(self, handshake: asyncio.Task[None]) -> None:
        self.leave()
        problem = None if handshake.cancelled() else handshake.exception()
        if handshake.cancelled() or problem is not None:
            self._socket.close()
        if problem is not None and not isinstance(problem, OSError):
            raise problem
