"""A connection that begins with TLS, from the moment that it is accepted to the end of its handshake.

A server of asyncio tells nobody of such a connection before the handshake has succeeded, so a flood of half-open ones
would have no limit. Here it is accepted without TLS, is counted, and its socket goes on to the handshake, for which it
has a limited time. One too many, or one for which the system has no second descriptor, is closed without a word,
because a word would need a handshake.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable

from postroad.network import smtp_session


class TlsAccept(asyncio.Protocol):
    """It is in `connections` until the session takes its place."""

    transport: asyncio.Transport
    _socket: socket.socket

    def __init__(self, shared: smtp_session.SmtpListenerState, tls: Callable[[], ssl.SSLContext]) -> None:
        self._shared = shared
        self._tls = tls
        self._client_address = ""
        self._handshake: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin the handshake on the same socket. The plain transport ends before it has read a byte."""
        self.transport = transport
        self._client_address = smtp_session.peer_address(transport)
        self._shared.enter(self, self._client_address)
        if self._shared.refusal(self._client_address) is None and self._shared.changed is None:
            with contextlib.suppress(OSError):
                self._socket = transport.get_extra_info("socket").dup()
                self._begin()
        transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - why does not matter
        """The plain transport has ended; without a handshake that is all."""
        if self._handshake is None:
            self.leave()

    def leave(self) -> None:
        """The session counts instead, or nothing is left to count."""
        self._shared.leave(self, self._client_address)

    def shutdown(self) -> None:
        """Nothing is under way that could be lost."""
        if self._handshake is not None:
            self._handshake.cancel()

    def sweep(self, now: float) -> None:
        """The handshake has a deadline of its own."""

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
