"""The HTTP/1.1 client with a bounded set of keep-alive connections, to addresses that the caller has checked.

    connect --exchange--> in use --complete response--> idle --exchange--> in use
    in use  --cancelled, cut, unparseable, or the peer closes--> closed
    idle    --unexpected data, end of stream, timeout, too many idle--> closed

The caller resolves and checks the address, so nothing is looked up here, and no proxy or environment variable applies.
The caller also bounds the time: a cancelled exchange closes its connection. A request is in memory anyway, so unsent
bytes wait in the transport and writing needs no flow control. Connections are closed without a TLS shutdown, which
would wait for the peer.

Redirects are returned as responses. A request is never sent twice: when the peer closes a kept connection as it is
used, whether it has read the request is unknown, and only the caller knows if a retry is safe (RFC 9110 section 9.2.2).
An exchange needs one future and no task, and one timer serves all connections. Failures raise `HttpClientError`.

The peer decides what it sends, so everything but the body (heads, interim ones too, and chunk framing) shares one small
budget, and the body is kept up to the size that the caller wants. Nothing is decoded. A response that ends with the
connection (RFC 9112 section 6.3) is marked, because an attacker who cuts the connection can shorten it. Requests are
never HEAD or CONNECT, whose responses are framed differently.
"""

import asyncio
import collections
import contextlib
import ipaddress
import math
import os
import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final

import httptools
import msgspec

# The limit of common servers for requests; a valid response needs far less.
OVERHEAD_BYTES: Final = 16 * 1024
HEADER_FIELDS: Final = 100
_FIRST_STATUS: Final = 100
_FIRST_FINAL_STATUS: Final = 200
_VERSIONS: Final = frozenset({"1.0", "1.1"})
# llhttp would also read RTSP and ICE.
_FIRST_OCTET: Final = ord("H")
# The loop reports the end of an aborted transport in its next iteration.
ABORT_SECONDS: Final = 1.0


class HttpClientError(Exception):
    """There is no usable response: a code that is one of three words, and a sentence for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Response(msgspec.Struct, frozen=True):
    """A final response. Names of fields are in lower case, and of several with one name the last counts."""

    status: int
    headers: Mapping[bytes, bytes]
    body: bytes
    is_truncated: bool = False
    ends_with_connection: bool = False


class _StopParsing(Exception):
    """The parser need not go on: the response is complete, or as long as it may be."""


class ResponseParser:
    """The responses on one connection, one after the other; after an `HttpClientError` it is unusable."""

    def __init__(self) -> None:
        self._parser: Any = httptools.HttpResponseParser(self)
        self.begin(max_body=0)

    def begin(self, *, max_body: int) -> None:
        """A request was sent: the next bytes are its response."""
        self._max_body = max_body
        self._received = 0
        self._status = 0
        self._headers: dict[bytes, bytes] = {}
        self._fields = 0
        self._has_length = False
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._is_truncated = False
        self._is_complete = False
        self._has_extra_data = False
        self._keeps_alive = False

    @property
    def is_empty(self) -> bool:
        return self._received == 0

    @property
    def is_reusable(self) -> bool:
        """The response ended where it said, and nothing follows but empty lines, which the parser passes over."""
        return self._keeps_alive and self._is_complete and not self._has_extra_data

    def feed(self, data: bytes) -> Response | None:
        if not self._received and data[0] != _FIRST_OCTET:
            raise _not_http()
        self._received += len(data)
        self._parse(data)
        overhead = self._received - self._body_bytes
        # Where the parser stopped within a read, how much of the rest is body is unknown.
        if overhead > OVERHEAD_BYTES and not (self._is_truncated or self._has_extra_data):
            raise HttpClientError("invalid_response", "the response header is too long")
        return self._response() if self._is_complete or self._is_truncated else None

    def end(self) -> Response | HttpClientError:
        """The connection has ended, and so may have a response that states no length."""
        if not self._status or self._has_length:
            return HttpClientError("invalid_response", "the response ends before it is complete")
        return self._response(ends_with_connection=True)

    def close(self) -> None:
        self._parser = None

    # Called by the parser.

    def on_message_begin(self) -> None:
        """A response begins; a second one was not requested."""
        if self._is_complete:
            self._has_extra_data = True
            raise _StopParsing

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field of the head, or a trailer field, which is ignored (RFC 9110 section 6.5.1)."""
        self._fields += 1
        if self._fields > HEADER_FIELDS:
            raise HttpClientError("invalid_response", "the response has too many header fields")
        if not self._status:
            self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        """A head is complete; that of an interim response (RFC 9110 section 15.2) is discarded."""
        status = self._parser.get_status_code()
        if status < _FIRST_STATUS or self._parser.get_http_version() not in _VERSIONS:
            raise _not_http()
        if status < _FIRST_FINAL_STATUS:
            self._headers.clear()
            return
        self._status = status
        codings = self._headers.get(b"transfer-encoding", b"").lower()
        self._has_length = b"content-length" in self._headers or codings.endswith(b"chunked")

    def on_body(self, content: bytes) -> None:
        self._body.append(content)
        self._body_bytes += len(content)
        if self._body_bytes > self._max_body:
            self._is_truncated = True
            raise _StopParsing

    def on_message_complete(self) -> None:
        if self._status:
            self._is_complete = True
            self._keeps_alive = self._parser.should_keep_alive()

    # Internal.

    def _parse(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:  # 101, which was not requested
            raise _not_http() from None
        except httptools.HttpParserError as problem:
            cause = problem.__context__
            if self._is_complete:
                self._has_extra_data = True
            elif cause is None:
                raise _not_http() from None
            elif not isinstance(cause, _StopParsing):
                raise cause from None

    def _response(self, *, ends_with_connection: bool = False) -> Response:
        body = b"".join(self._body)[: self._max_body]
        return Response(self._status, self._headers, body, self._is_truncated, ends_with_connection)


def _not_http() -> HttpClientError:
    return HttpClientError("invalid_response", "the response is not HTTP")


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """Where to connect; the certificate has to be for `host`, which may be a name or an address."""

    host: str
    address: str
    port: int
    tls: ssl.SSLContext | None


class ConnectError(HttpClientError):
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
        raise HttpClientError("tls_failure", f"{peer.host} is not a valid host name for a certificate") from None
    except OSError as problem:
        # Connecting itself is refused, not reset.
        if peer.tls is not None and isinstance(problem, ConnectionResetError):
            raise HttpClientError(
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
        self._reader = ResponseParser()
        self._waiter: asyncio.Future[Response | HttpClientError] | None = None
        self._is_over = False

    @property
    def is_usable(self) -> bool:
        """Whether the next exchange may begin here."""
        return not self._is_over and not self._transport.is_closing()

    @property
    def is_reusable(self) -> bool:
        """Whether the exchange that has ended leaves it as good as new; an early answer may overtake its request."""
        return self.is_usable and self._reader.is_reusable and not self._transport.get_write_buffer_size()

    async def exchange(self, request: bytes, *, max_body: int) -> Response:
        """The response to these bytes, with as much of its body."""
        if not self.is_usable:
            raise self._closed("the connection was closed")
        self._reader.begin(max_body=max_body)
        waiter: asyncio.Future[Response | HttpClientError] = self._loop.create_future()
        self._waiter = waiter
        self._transport.write(request)
        try:
            found = await waiter
        except BaseException:
            self.abort()
            raise
        finally:
            self._waiter = None
        if isinstance(found, HttpClientError):
            raise found
        return found

    def abort(self) -> None:
        """Close at once; an exchange in progress raises HttpClientError."""
        self._finish(HttpClientError("connection_failed", "the connection was closed by this host"))

    # Called by the transport.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        waiter = self._waiter
        if self._is_over or waiter is None or waiter.done():
            self.abort()
            return
        try:
            response = self._reader.feed(data)
        except HttpClientError as error:
            self._finish(error)
            return
        if response is not None:
            waiter.set_result(response)
            if response.is_truncated:
                self.abort()

    def eof_received(self) -> None:
        self._end(None)

    def connection_lost(self, exc: Exception | None) -> None:
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

    def _closed(self, words: str) -> HttpClientError:
        return HttpClientError("connection_failed", f"{_where(self.peer)}: {words}")

    def _finish(self, result: Response | HttpClientError) -> None:
        if self._is_over:
            return
        self._is_over = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(result)
        self._transport.abort()


def _where(peer: Peer) -> str:
    return peer.host if peer.host == peer.address else f"{peer.host} at {peer.address}"


def _client_error(peer: Peer, problem: Exception) -> HttpClientError:
    code = "tls_failure" if isinstance(problem, ssl.SSLError) else "connection_failed"
    return HttpClientError(code, f"{_where(peer)}: {_describe(problem)}")


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


class Client:
    """Exchanges over kept connections, of which at most `max_idle` stay idle."""

    def __init__(self, *, idle_seconds: float, max_idle: int) -> None:
        self._idle_seconds = idle_seconds
        self._max_idle = max_idle
        self._connections: set[Connection] = set()
        # The idle ones, those that will be closed first in front; and again by peer, the newest at the end.
        self._idle: collections.OrderedDict[Connection, None] = collections.OrderedDict()
        self._by_peer: dict[Peer, list[Connection]] = {}
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

    async def _connect(self, peer: Peer) -> Connection:
        self._check_open()
        connection = await connect(peer, when_lost=self._on_lost)
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

    def _take(self, peer: Peer) -> Connection | None:
        """The connection used last, so that surplus ones expire."""
        while (waiting := self._by_peer.get(peer)) is not None:
            connection = waiting.pop()
            del self._idle[connection]
            if not waiting:
                del self._by_peer[peer]
            if connection.is_usable:
                return connection
        return None

    def _keep(self, connection: Connection) -> None:
        self._by_peer.setdefault(connection.peer, []).append(connection)
        connection.idle_until = asyncio.get_running_loop().time() + self._idle_seconds
        self._idle[connection] = None
        if len(self._idle) > self._max_idle:
            self._close_idle(next(iter(self._idle)))
        if self._timer is None and self._idle:
            self._tick()

    def _close_idle(self, connection: Connection) -> None:
        self._forget(connection)
        connection.abort()

    def _forget(self, connection: Connection) -> None:
        del self._idle[connection]
        waiting = self._by_peer[connection.peer]
        waiting.remove(connection)
        if not waiting:
            del self._by_peer[connection.peer]

    def _on_lost(self, connection: Connection) -> None:
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
