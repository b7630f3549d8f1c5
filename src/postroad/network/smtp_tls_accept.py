"""A connection with implicit TLS (RFC 8314), from accept to the end of its handshake.

asyncio does not report such a connection before its handshake has succeeded, so half-open ones would have no limit.
Here it is accepted without TLS, counted, and its socket passed on to a handshake with a timeout. A connection over the
limit, or one for which no second file descriptor is free, is closed without a reply: that would need a handshake.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable

from postroad.network import smtp_session


class TlsAccept(asyncio.Protocol):
    """A handshake; it is in `connections` until the session replaces it."""

    transport: asyncio.Transport
    _socket: socket.socket

    def __init__(self, shared: smtp_session.SmtpListenerState, tls: Callable[[], ssl.SSLContext]) -> None:
        self._shared = shared
        self._tls = tls
        self._client_address = ""
        self._handshake: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin the handshake on the same socket. The plain transport is closed before it reads a byte."""
        self.transport = transport
        self._client_address = smtp_session.peer_address(transport)
        self._shared.connections.enter(self, self._client_address)
        if self._shared.refusal(self._client_address) is None and self._shared.changed is None:
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
        self._shared.leave(self, self._client_address)

    def shutdown(self) -> None:
        """Cancel the handshake: no transaction is in progress."""
        if self._handshake is not None:
            self._handshake.cancel()

    def sweep(self, now: float) -> None:
        """Nothing to do: the handshake has its own timeout."""

    def _begin(self) -> None:
        self._handshake = asyncio.get_running_loop().create_task(self._run_handshake())
        self._shared.working.add(self._handshake)
        self._handshake.add_done_callback(self._ended)

    async def _run_handshake(self) -> None:
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: smtp_session.SmtpSession(self._shared, on_admitted=self.leave),
            self._socket,
            ssl=self._tls(),
            ssl_handshake_timeout=self._shared.limits.handshake_seconds,
            ssl_shutdown_timeout=smtp_session.TLS_SHUTDOWN_SECONDS,
        )

    def _ended(self, handshake: asyncio.Task[None]) -> None:
        self._shared.working.discard(handshake)
        self.leave()
        problem = None if handshake.cancelled() else handshake.exception()
        if handshake.cancelled() or problem is not None:
            self._socket.close()
        if problem is not None and not isinstance(problem, OSError):
            raise problem
