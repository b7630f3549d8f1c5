"""One connection of the HTTP client: a request goes out, a response comes in, one after the other.

The address is one that the caller has looked up and checked, so nothing is looked up here, and no proxy and no
environment has a say. The caller bounds the time: a cancelled exchange closes its connection. A request is in memory
anyway, so the part of it that the peer does not read yet waits in the transport, and writing needs no pauses.
Connections are closed without ceremony: a polite end of TLS would wait for the other side. What goes wrong is a
`Trouble`.
"""

import asyncio
import ipaddress
import math
import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass

from postroad.network import http_response_parser


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Where to connect; the certificate has to be for `host`, which may be a name or an address."""

    host: str
    address: str
    port: int
    tls: ssl.SSLContext | None


class ConnectError(http_response_parser.HttpClientError):
    """No connection came about, so nothing was sent: another address of the same host may be tried."""


def client_context(ca_file: str = "") -> ssl.SSLContext:
    """Checks chain and host; `ca_file` takes the place of the system's authorities. Making it takes milliseconds."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_2  # RFC 8996
    made.set_alpn_protocols(["http/1.1"])  # so that no server of another protocol takes our request for its own
    if ca_file:
        made.load_verify_locations(cafile=ca_file)
    else:
        made.load_default_certs(ssl.Purpose.SERVER_AUTH)
    return made


async def connect(place: Peer, *, when_lost: Callable[["Connection"], None] | None = None) -> "Connection":
    """A new connection, secured as the place wants it; `when_lost` is called once, when it is gone."""
    ipaddress.ip_address(place.address)  # a name would be looked up, and by whom nobody knows
    try:
        place.host.encode("idna")  # as the handshake does, where a failure would leave the socket open
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: Connection(place, when_lost=when_lost),
            place.address,
            place.port,
            ssl=place.tls,
            server_hostname=place.host if place.tls is not None else None,
        )
    except UnicodeError:
        raise http_response_parser.HttpClientError(
            "tls_failure", f"{place.host} is not a name that a certificate could be for"
        ) from None
    except OSError as problem:
        # Connecting itself is refused, not reset.
        if place.tls is not None and isinstance(problem, ConnectionResetError):
            raise http_response_parser.HttpClientError(
                "tls_failure", f"{_where(place)}: the connection was closed in the TLS handshake"
            ) from None
        if isinstance(problem, ssl.SSLError):
            raise _client_error(place, problem) from None
        raise ConnectError("connection_failed", f"{_where(place)}: {_describe(problem)}") from None
    return connection


class Connection(asyncio.Protocol):
    """One connection; `connect` makes it, and whoever has it calls `abort` in the end."""

    __slots__ = ("_is_over", "_loop", "_reader", "_transport", "_waiter", "_when_lost", "idle_until", "place")

    _transport: asyncio.Transport

    def __init__(self, place: Peer, *, when_lost: Callable[["Connection"], None] | None = None) -> None:
        self.place = place
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
        """Close at once; an exchange that is under way ends in Trouble."""
        self._finish(
            http_response_parser.HttpClientError("connection_failed", "the connection was given up on this side")
        )

    # What the transport calls.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Connected, and secured."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """A part of the response, or something that nobody asked for."""
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
        """The other side has said its last word."""
        self._end(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._end(exc)
        self._reader.close()
        if self._when_lost is not None:
            self._when_lost(self)

    # Our own.

    def _end(self, problem: Exception | None) -> None:
        """The connection ends; so may, without a problem, a response."""
        if self._is_over or self._waiter is None or self._waiter.done():
            self.abort()
        elif self._reader.is_empty and not isinstance(problem, ssl.SSLError):  # an alert is not silence
            self._finish(
                self._closed(_describe(problem) if problem else "the connection was closed before a response came")
            )
        elif problem is not None:
            self._finish(_client_error(self.place, problem))
        else:
            self._finish(self._reader.end())

    def _closed(self, words: str) -> http_response_parser.HttpClientError:
        return http_response_parser.HttpClientError("connection_failed", f"{_where(self.place)}: {words}")

    def _finish(self, result: http_response_parser.Response | http_response_parser.HttpClientError) -> None:
        if self._is_over:
            return
        self._is_over = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(result)
        self._transport.abort()


def _where(place: Peer) -> str:
    return place.host if place.host == place.address else f"{place.host} at {place.address}"


def _client_error(place: Peer, problem: Exception) -> http_response_parser.HttpClientError:
    code = "tls_failure" if isinstance(problem, ssl.SSLError) else "connection_failed"
    return http_response_parser.HttpClientError(code, f"{_where(place)}: {_describe(problem)}")


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
