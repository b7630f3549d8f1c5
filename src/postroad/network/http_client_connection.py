"""One connection of the HTTP client: one request and its response at a time.

The caller resolves and checks the address, so nothing is looked up here, and no proxy or environment variable applies.
The caller also bounds the time: a cancelled exchange closes its connection. A request is in memory anyway, so unsent
bytes wait in the transport and writing needs no flow control. Connections are closed without a TLS shutdown, which
would wait for the peer. Failures raise `HttpClientError`.
"""

import asyncio
import ipaddress
import math
import os
import ssl
from collections.abc import Callable

import msgspec

from postroad.network import http_response_parser


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """Where to connect; the certificate has to be for `host`, which may be a name or an address."""

    host: str
    address: str
    port: int
    tls: ssl.SSLContext | None


class ConnectError(http_response_parser.HttpClientError):
    """No connection came about, so nothing was sent: another address of the same host may be tried."""


def client_context(ca_file: str = "") -> ssl.SSLContext:
    """Checks chain and host; `ca_file` replaces the system's authorities. Making it takes milliseconds."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_2  # RFC 8996
    made.set_alpn_protocols(["http/1.1"])  # so that no server of another protocol takes our request for its own
    if ca_file:
        made.load_verify_locations(cafile=ca_file)
    else:
        made.load_default_certs(ssl.Purpose.SERVER_AUTH)
    return made


async def connect(peer: Peer, *, when_lost: Callable[["Connection"], None] | None = None) -> "Connection":
    """A new connection, with TLS if the peer has a context; `when_lost` is called once, when it is closed."""
    ipaddress.ip_address(peer.address)  # a name would be resolved, bypassing the caller's checks
    try:
        peer.host.encode("idna")  # as the handshake does, where a failure would leave the socket open
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: Connection(peer, when_lost=when_lost),
            peer.address,
            peer.port,
            ssl=peer.tls,
            server_hostname=peer.host if peer.tls is not None else None,
        )
    except UnicodeError:
        raise http_response_parser.HttpClientError(
            "tls_failure", f"{peer.host} is not a valid host name for a certificate"
        ) from None
    except OSError as problem:
        # Connecting itself is refused, not reset.
        if peer.tls is not None and isinstance(problem, ConnectionResetError):
            raise http_response_parser.HttpClientError(
                "tls_failure", f"{_where(peer)}: the connection was closed in the TLS handshake"
            ) from None
        if isinstance(problem, ssl.SSLError):
            raise _client_error(peer, problem) from None
        raise ConnectError("connection_failed", f"{_where(peer)}: {_describe(problem)}") from None
    return connection


class Connection(asyncio.Protocol):
    """One connection; `connect` creates it, and its owner calls `abort` in the end."""

    __slots__ = ("_is_over", "_loop", "_reader", "_transport", "_waiter", "_when_lost", "idle_until", "peer")

    _transport: asyncio.Transport

    def __init__(self, peer: Peer, *, when_lost: Callable[["Connection"], None] | None = None) -> None:
        self.peer = peer
        self.idle_until = math.inf
        self._when_lost = when_lost
        self._loop = asyncio.get_running_loop()
        self._reader = http_response_parser.ResponseParser()
        self._waiter: asyncio.Future[http_response_parser.Response | http_response_parser.HttpClientError] | None = None
        self._is_over = False

    @property
    def is_usable(self) -> bool:
        """Whether the next exchange may begin here."""
        return not self._is_over and not self._transport.is_closing()

    @property
    def is_reusable(self) -> bool:
        """Whether the exchange that has ended leaves it as good as new; an early answer may overtake its request."""
        return self.is_usable and self._reader.is_reusable and not self._transport.get_write_buffer_size()

    async def exchange(self, request: bytes, *, max_body: int) -> http_response_parser.Response:
        """The response to these bytes, with as much of its body."""
        if not self.is_usable:
            raise self._closed("the connection was closed")
        self._reader.begin(max_body=max_body)
        waiter: asyncio.Future[http_response_parser.Response | http_response_parser.HttpClientError] = (
            self._loop.create_future()
        )
        self._waiter = waiter
        self._transport.write(request)
        try:
            found = await waiter
        except BaseException:
            self.abort()
            raise
        finally:
            self._waiter = None
        if isinstance(found, http_response_parser.HttpClientError):
            raise found
        return found

    def abort(self) -> None:
        """Close at once; an exchange in progress raises HttpClientError."""
        self._finish(
            http_response_parser.HttpClientError("connection_failed", "the connection was closed by this host")
        )

    # Called by the transport.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Connected, and secured."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """A part of the response, or unexpected data."""
        waiter = self._waiter
        if self._is_over or waiter is None or waiter.done():
            self.abort()
            return
        try:
            response = self._reader.feed(data)
        except http_response_parser.HttpClientError as error:
            self._finish(error)
            return
        if response is not None:
            waiter.set_result(response)
            if response.is_truncated:
                self.abort()

    def eof_received(self) -> None:
        """The peer sends no more."""
        self._end(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        self._end(exc)
        self._reader.close()
        if self._when_lost is not None:
            self._when_lost(self)

    # Internal.

    def _end(self, problem: Exception | None) -> None:
        """The connection ends; so may, without a problem, a response."""
        if self._is_over or self._waiter is None or self._waiter.done():
            self.abort()
        elif self._reader.is_empty and not isinstance(problem, ssl.SSLError):  # an alert is not silence
            self._finish(
                self._closed(_describe(problem) if problem else "the connection was closed before a response came")
            )
        elif problem is not None:
            self._finish(_client_error(self.peer, problem))
        else:
            self._finish(self._reader.end())

    def _closed(self, words: str) -> http_response_parser.HttpClientError:
        return http_response_parser.HttpClientError("connection_failed", f"{_where(self.peer)}: {words}")

    def _finish(self, result: http_response_parser.Response | http_response_parser.HttpClientError) -> None:
        if self._is_over:
            return
        self._is_over = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(result)
        self._transport.abort()


def _where(peer: Peer) -> str:
    return peer.host if peer.host == peer.address else f"{peer.host} at {peer.address}"


def _client_error(peer: Peer, problem: Exception) -> http_response_parser.HttpClientError:
    code = "tls_failure" if isinstance(problem, ssl.SSLError) else "connection_failed"
    return http_response_parser.HttpClientError(code, f"{_where(peer)}: {_describe(problem)}")


def _describe(problem: Exception) -> str:
    """What the system says, without the decoration that differs between event loops."""
    if isinstance(problem, ssl.SSLCertVerificationError):
        return f"its certificate is not valid: {problem.verify_message}"
    if isinstance(problem, ssl.SSLError):
        return f"TLS: {(problem.reason or 'it failed').replace('_', ' ').lower()}"
    if isinstance(problem, OSError) and problem.errno:
        return os.strerror(problem.errno).lower()
    if isinstance(problem, ConnectionError):
        return "the connection was lost"
    return str(problem) or type(problem).__name__
