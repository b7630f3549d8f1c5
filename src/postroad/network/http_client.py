"""The HTTP/1.1 client with a bounded set of keep-alive connections.

    connect --exchange--> in use --complete response--> idle --exchange--> in use
    in use  --cancelled, cut, unparseable, or the peer closes--> closed
    idle    --unexpected data, end of stream, timeout, too many idle--> closed

Redirects are returned as responses. A request is never sent twice: when the peer closes a kept connection as it is
used, whether it has read the request is unknown, and only the caller knows if a retry is safe (RFC 9110 section 9.2.2).
An exchange needs one future and no task, and one timer serves all connections.
"""

import asyncio
import collections
import contextlib
from typing import Final

from postroad.network import http_client_connection, http_response_parser

# Re-exported for callers.
Peer = http_client_connection.Peer
Response = http_response_parser.Response
HttpClientError = http_response_parser.HttpClientError
ConnectError = http_client_connection.ConnectError
client_context = http_client_connection.client_context

# The loop reports the end of an aborted transport in its next iteration.
ABORT_SECONDS: Final = 1.0


class Client:
    """Exchanges over kept connections, of which at most `max_idle` stay idle."""

    def __init__(self, *, idle_seconds: float, max_idle: int) -> None:
        self._idle_seconds = idle_seconds
        self._max_idle = max_idle
        self._connections: set[http_client_connection.Connection] = set()
        # The idle ones, those that will be closed first in front; and again by peer, the newest at the end.
        self._idle: collections.OrderedDict[http_client_connection.Connection, None] = collections.OrderedDict()
        self._by_peer: dict[Peer, list[http_client_connection.Connection]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._all_gone: asyncio.Event | None = None

    async def exchange(
        self, peer: Peer, request: bytes, *, max_body: int, connect_seconds: float | None = None
    ) -> Response:
        """The final response, its body cut at `max_body`. Raises HttpClientError. Connecting may have a timeout."""
        connection = self._take(peer)
        if connection is None:
            try:
                async with asyncio.timeout(connect_seconds):
                    connection = await self._connect(peer)
            except TimeoutError:
                where = f"{peer.host} at {peer.address}"
                raise ConnectError("connection_failed", f"{where}: connection timed out") from None
        response = await connection.exchange(request, max_body=max_body)
        if connection.is_reusable and not self._is_closed:
            self._keep(connection)
        else:
            connection.abort()
        return response

    async def close(self) -> None:
        """Close everything; exchanges in progress raise HttpClientError."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._all_gone = asyncio.Event()
        for connection in list(self._connections):
            connection.abort()
        if self._connections:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ABORT_SECONDS):
                    await self._all_gone.wait()

    async def _connect(self, peer: Peer) -> http_client_connection.Connection:
        self._check_open()
        connection = await http_client_connection.connect(peer, when_lost=self._on_lost)
        if connection.is_usable:  # otherwise it is already lost, and `_on_lost` was called
            self._connections.add(connection)
        if self._is_closed:
            connection.abort()
            self._check_open()
        return connection

    def _check_open(self) -> None:
        if self._is_closed:
            raise HttpClientError("connection_failed", "the client is closed")

    # The idle ones.

    def _take(self, peer: Peer) -> http_client_connection.Connection | None:
        """The connection used last, so that surplus ones expire."""
        while (waiting := self._by_peer.get(peer)) is not None:
            connection = waiting.pop()
            del self._idle[connection]
            if not waiting:
                del self._by_peer[peer]
            if connection.is_usable:
                return connection
        return None

    def _keep(self, connection: http_client_connection.Connection) -> None:
        self._by_peer.setdefault(connection.peer, []).append(connection)
        connection.idle_until = asyncio.get_running_loop().time() + self._idle_seconds
        self._idle[connection] = None
        if len(self._idle) > self._max_idle:
            self._close_idle(next(iter(self._idle)))
        if self._timer is None and self._idle:
            self._tick()

    def _close_idle(self, connection: http_client_connection.Connection) -> None:
        self._forget(connection)
        connection.abort()

    def _forget(self, connection: http_client_connection.Connection) -> None:
        """It is no longer idle."""
        del self._idle[connection]
        waiting = self._by_peer[connection.peer]
        waiting.remove(connection)
        if not waiting:
            del self._by_peer[connection.peer]

    def _on_lost(self, connection: http_client_connection.Connection) -> None:
        """Forget a closed connection."""
        if connection in self._idle:
            self._forget(connection)
        self._connections.discard(connection)
        if self._all_gone is not None and not self._connections:
            self._all_gone.set()

    def _tick(self) -> None:
        """Close expired connections, and schedule the next check."""
        loop = asyncio.get_running_loop()
        self._timer = None
        while self._idle:
            oldest = next(iter(self._idle))
            if oldest.idle_until > loop.time():
                self._timer = loop.call_at(oldest.idle_until, self._tick)
                return
            self._close_idle(oldest)
