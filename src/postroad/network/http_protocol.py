"""One HTTP/1.1 connection: uvicorn's protocol on httptools, with bounds, deadlines and refusals of our own.

The parser (llhttp) bounds nothing and uvicorn times only idle connections. Here the head is bounded in bytes, fields
and time, the body in time and chunks, pipelining in depth, and an unread body is drained only so far. What llhttp
lets pass but RFC 9112 forbids (sections 3.2, 6.1) is refused. An offer to upgrade is ignored as RFC 9110 section 7.8
allows: the head is fed again without it, because llhttp would take the body for the next request. Deadlines are plain
numbers that the listener's `sweep` compares once a second, so that a request costs no timer.
"""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import httptools
import uvicorn
from uvicorn import server as uvicorn_server
from uvicorn.protocols.http import httptools_impl

from postroad import errors

Refuse = Callable[[errors.PostroadError], tuple[int, list[tuple[bytes, bytes]], bytes]]

_VERSIONS: Final = ("1.1", "1.0")
_NOT_HTTP: Final = "this is not a valid HTTP/1.1 request"
_HOP_BY_HOP: Final = (b"connection", b"upgrade", b"http2-settings")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one listener takes from the world."""

    connections: int = 4096
    # The common size of proxies in front of us; a token, a cookie and tracing fields fit many times.
    head_bytes: int = 64 * 1024
    header_fields: int = 100
    url_bytes: int = 8 * 1024
    head_seconds: float = 10
    # 32 MiB in two minutes: 2.3 Mbit/s.
    body_seconds: float = 120
    # A client that streams 32 MiB in pieces of 512 bytes is still served.
    body_chunks: int = 65_536
    # What chunks may cost beside their content: sizes, extensions, trailers. Twice what the chunks above need.
    framing_bytes: int = 1024 * 1024
    # Longer than the 60 s after which load balancers usually let go of an idle connection.
    idle_seconds: int = 75
    # A caller that is refused while it sends should be able to finish sending and read why.
    drain_bytes: int = 64 * 1024 * 1024
    drain_seconds: float = 10
    # A caller that does not read its answer for this long is gone.
    write_seconds: float = 60
    pipelined_requests: int = 16


class _Refused(Exception):
    """Raised inside a parser callback, with the public message; httptools wraps it and stops."""


class HttpProtocol(httptools_impl.HttpToolsProtocol):
    """A connection. `refuse` makes the response to what never becomes a request; `lost` hears of its end."""

    def __init__(
        self,
        config: uvicorn.Config,
        state: uvicorn_server.ServerState,
        *,
        limits: Limits,
        refuse: Refuse,
        lost: Callable[[], None],
    ) -> None:
        super().__init__(config, state, {})
        self._limits = limits
        self._response_to = refuse
        self._lost = lost
        self._deadline = math.inf
        self._stuck_since = math.inf
        self._began = 0.0
        self._in_head = False
        self._in_body = False
        self._refused = False
        self._overhead = 0
        self._chunks = 0
        self._drained = 0

    # What the transport calls.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A new connection; one too many is turned away at once."""
        super().connection_made(transport)
        self._deadline = self.loop.time() + self._limits.head_seconds
        if len(self.connections) > self._limits.connections:
            self._refused = True
            self._write_refusal(errors.ServiceUnavailable("too many connections; try again shortly", retry_after=1))
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        super().connection_lost(exc)
        self._lost()

    def data_received(self, data: bytes) -> None:
        """Bytes of requests, or bytes to throw away after a refusal."""
        self._unset_keepalive_if_required()
        if self._refused:
            self._drain(len(data))
            return
        # The parser keeps an unfinished field or trailer to itself; only counting what goes in bounds it.
        self._overhead += len(data)
        try:
            self._feed(data)
        except httptools.HttpParserError as problem:
            cause = problem.__context__
            self._refuse(str(cause) if isinstance(cause, _Refused) else _NOT_HTTP)
            return
        if self._in_head and self._overhead > self._limits.head_bytes:
            self._refuse(self._head_too_large())
        elif self._in_body and self._overhead > self._limits.framing_bytes:
            self._refuse("body: its chunks carry more than their content")
        elif self._deadline == math.inf and self._is_idle():
            # Empty lines between requests, or the end of a body that was answered before it was complete.
            self._deadline = self.loop.time() + self._limits.idle_seconds

    # What the parser calls.

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        if len(self.pipeline) >= self._limits.pipelined_requests:
            raise _Refused("too many requests at once on one connection")
        super().on_message_begin()
        self._began = self.loop.time()
        self._deadline = self._began + self._limits.head_seconds
        self._in_head = True
        self._overhead = 0
        self._chunks = 0
        self._drained = 0

    def on_url(self, url: bytes) -> None:
        """A part of the request target."""
        super().on_url(url)
        if len(self.url) > self._limits.url_bytes:
            raise _Refused(f"the address is too long; at most {self._limits.url_bytes} bytes")

    def on_headers_complete(self) -> None:
        """The head is complete: the request starts, unless it would be read in more than one way."""
        size = _checked_size(self.headers, version=self.parser.get_http_version())
        if size > self._limits.head_bytes or len(self.headers) > self._limits.header_fields:
            raise _Refused(self._head_too_large())
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                raise _Refused("CONNECT is not a method of this service")
            return
        super().on_headers_complete()
        self._in_head = False
        self._in_body = True
        self._overhead = 0
        # Trailer fields come the same way as header fields, and are nobody's (RFC 9110 section 6.5.1).
        self.headers = []
        self._deadline = self._began + self._limits.body_seconds

    def on_chunk_header(self) -> None:
        """The head of a chunk: a chunk costs as much as a field, so their number is bounded too."""
        self._chunks += 1
        if self._chunks > self._limits.body_chunks:
            raise _Refused(f"body: sent in too many chunks; at most {self._limits.body_chunks}")

    def on_body(self, body: bytes) -> None:
        """A part of a body; it is thrown away when the request has been answered already."""
        self._overhead -= len(body)
        if self.cycle.response_complete:
            self._drain(len(body))
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is complete, unless the parser stopped at an offer to upgrade."""
        if self._in_body:
            self._in_body = False
            self._deadline = math.inf
            super().on_message_complete()

    # What the response and the listener call.

    def on_response_complete(self) -> None:
        """The response is on its way; the rest of an unread body gets a little time."""
        super().on_response_complete()
        if self._in_body and self.cycle.response_complete:
            self._unset_keepalive_if_required()
            self._deadline = self.loop.time() + self._limits.drain_seconds

    def sweep(self, now: float) -> None:
        """End the connection if a deadline has passed."""
        if self.flow.write_paused or self.transport.is_closing():
            self._stuck_since = min(self._stuck_since, now)
            if now - self._stuck_since >= self._limits.write_seconds:
                self.transport.abort()
            return
        self._stuck_since = math.inf
        if now < self._deadline:
            return
        self._deadline = math.inf
        if self._refused or not (self._in_head or self._in_body):
            self.transport.close()
        else:
            part = "head" if self._in_head else "body"
            self._refuse(f"the {part} of the request did not arrive in time")

    # Our own.

    def _feed(self, data: bytes) -> None:
        while data:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                data = self._head_without_upgrade() + data[upgrade.args[0] :]
                self.parser = httptools.HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            else:
                return

    def _head_without_upgrade(self) -> bytes:
        lines = [b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())]
        lines += [name + b": " + value for name, value in self.headers if name not in _HOP_BY_HOP]
        if any(name == b"connection" and b"close" in value.lower() for name, value in self.headers):
            lines.append(b"connection: close")
        return b"\r\n".join([*lines, b"", b""])

    def _is_idle(self) -> bool:
        return not self._in_head and not self._in_body and _is_answered(self.cycle)

    def _drain(self, size: int) -> None:
        self._drained += size
        if self._drained > self._limits.drain_bytes:
            self.transport.close()

    def _head_too_large(self) -> str:
        return f"too many header fields; at most {self._limits.header_fields}, with {self._limits.head_bytes} bytes"

    def _refuse(self, why: str) -> None:
        """Answer what cannot become a request, after which nothing on this connection can be understood."""
        self._refused = True
        cycle = self.cycle
        if _is_answered(cycle) and not self._in_body:
            self._write_refusal(errors.InvalidRequest(why))
            self._half_close()
        elif not self._in_body:
            # The good requests before it still get their answers; then the connection ends.
            cycle.keep_alive = False
            self._deadline = math.inf
            self.flow.pause_reading()
        elif cycle.response_started or self.pipeline:
            self.transport.close()
        else:
            cycle.disconnected = True
            cycle.message_event.set()
            self._write_refusal(errors.InvalidRequest(why))
            self._half_close()

    def _write_refusal(self, error: errors.PostroadError) -> None:
        status, fields, content = self._response_to(error)
        lines = [name + b": " + value for name, value in (*self.server_state.default_headers, *fields)]
        head = httptools_impl.STATUS_LINE[status] + b"\r\n".join([*lines, b"connection: close", b"", b""])
        self.transport.write(head + content)

    def _half_close(self) -> None:
        """Say that no more will come, and let the other side read it: a plain close could destroy the answer."""
        self._deadline = self.loop.time() + self._limits.drain_seconds
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()


def _is_answered(cycle: httptools_impl.RequestResponseCycle | None) -> bool:
    return cycle is None or cycle.response_complete


def _checked_size(headers: list[tuple[bytes, bytes]], *, version: str) -> int:
    """The size of the fields, or a refusal of what RFC 9112 sections 2.3, 3.2 and 6.1 forbid and llhttp lets pass."""
    if version not in _VERSIONS:
        raise _Refused(_NOT_HTTP)
    size = hosts = 0
    for name, value in headers:
        size += len(name) + len(value)
        if name == b"host":
            hosts += 1
        elif name == b"transfer-encoding" and (version == "1.0" or value.lower() != b"chunked"):
            raise _Refused("Transfer-Encoding: only chunked, and only in HTTP/1.1")
    if hosts > 1 or (hosts == 0 and version == "1.1"):
        raise _Refused("Host: send it once")
    return size
