"""One HTTP/1.1 connection: the order of exchanges, deadlines, and refusals.

The parser turns bytes into requests; each becomes an exchange. `_newest` is the exchange read last, `_active` the one
being answered, `_waiting` holds those in between (pipelining, RFC 9112 section 9.3.2).

    a request --none is active--> active --answered--> the next exchange, or idle, or closed
              --one is active---> waiting: reading is paused until it is active
    anything unparseable --_refuse--> refused: further input is discarded, within limits

Only the active exchange writes; the connection itself writes a refusal when there is none, or in its place. Deadlines
are plain numbers that the listener's `sweep` compares once a second, so a request needs no timer.
"""

import asyncio
import fcntl
import math
import termios
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from postroad import errors
from postroad.network import (
    http_exchange,
    http_limits,
    http_request,
    http_request_parser,
    http_response,
    open_connections,
)

_ASGI: Final = {"version": "3.0", "spec_version": "2.3"}
_TOO_MANY: Final = {
    open_connections.Excess.TOTAL: "too many connections; try again shortly",
    open_connections.Excess.PER_ADDRESS: "too many connections from your address; close some, or try again shortly",
}
# The first request of a connection that was accepted just before a stop is on its way: closing would lose it.
FIRST_REQUEST_SECONDS: Final = 1.0
# A small body arrives at once, and few large ones arrive at a time (web/body_limits.py): an account that takes longer
# than this may lose the connection to a newcomer when the listener is full. A stranger has no such time.
SLOW_BODY_SECONDS: Final = 10.0
# To read a request that had arrived, so that closing does not reset the connection before its refusal is read.
LINGER_SECONDS: Final = 0.1


class HttpProtocol(asyncio.Protocol):
    """A connection; it is in `connections` while it is open."""

    transport: asyncio.Transport

    def __init__(
        self,
        shared: http_exchange.HttpListenerState,
        *,
        limits: http_limits.Limits,
        connections: open_connections.OpenConnections,
        on_admitted: Callable[[], None] | None = None,
    ) -> None:
        """`on_admitted` is called first, to release the slot that the handshake held."""
        self._shared = shared
        self._on_admitted = on_admitted
        self._limits = limits
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._reader = http_request_parser.RequestParser(self, limits)
        self._scheme = "http"
        self._client: tuple[str, int] | None = None
        self._server: tuple[str, int] | None = None
        self._newest: http_exchange.Exchange | None = None
        self._active: http_exchange.Exchange | None = None
        self._waiting: deque[http_exchange.Exchange] = deque()
        self._refused = False
        self._drained = 0
        # Exists while the client does not read; set when it has read, or is gone.
        self.unwritable: asyncio.Event | None = None
        self._opened = self._began = 0.0
        self._deadline = math.inf
        self._paused_at: float | None = None
        self._stuck_since = math.inf
        self._account_id: str | None = None

    # Called by the transport.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A new connection; one over the limit is refused at once."""
        self.transport = transport
        self._client = _address(transport.get_extra_info("peername"))
        if self._on_admitted is not None:
            self._on_admitted()
        self._server = _address(transport.get_extra_info("sockname"))
        self._scheme = "https" if transport.get_extra_info("sslcontext") else "http"
        self._opened = self._loop.time()
        self._deadline = self._opened + self._limits.head_seconds
        excess = self._connections.enter(self, self._client[0] if self._client is not None else "")
        if excess is not None:
            self._refused = True
            self._write_refusal(errors.ServiceUnavailable(_TOO_MANY[excess], retry_after=1))
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the cause does not matter
        """The connection is closed: notify the exchange."""
        self._connections.leave(self)
        if self._active is not None:
            self._active.disconnect()
        self._forget()
        self.resume_writing()
        self._reader.close()
        if self._shared.changed is not None:
            self._shared.changed.set()

    def pause_writing(self) -> None:
        """The caller does not read fast enough."""
        if self.unwritable is None:
            self.unwritable = asyncio.Event()

    def resume_writing(self) -> None:
        """The caller has read, or is gone."""
        if self.unwritable is not None:
            self.unwritable.set()
            self.unwritable = None
            # A slow client that reads gets a new deadline.
            self._stuck_since = math.inf

    def data_received(self, data: bytes) -> None:
        """Bytes of requests, or bytes to discard after a refusal."""
        if self._refused:
            self._drain(len(data))
            return
        try:
            self._reader.feed(data)
        except errors.PostroadError as error:
            self._refuse(error)
        else:
            self._update_flow()

    # Called by the parser.

    def begin(self) -> None:
        """The first byte of a request."""
        if len(self._waiting) >= self._limits.pipelined_requests:
            raise http_request.BadRequest("too many pipelined requests on one connection")
        self._began = self._loop.time()
        self._deadline = self._began + self._limits.head_seconds
        self._drained = 0

    def request(
        self,
        headers: http_request.Headers,
        *,
        method: bytes,
        url: bytes,
        version: str,
        keep_alive: bool,
        expects_continue: bool,
    ) -> None:
        """A head is complete: an exchange begins."""
        path, raw_path, query = http_request.target(url)
        scope = {
            "type": "http",
            "asgi": _ASGI,
            "http_version": version,
            "method": method.decode("ascii"),
            "scheme": self._scheme,
            "path": path,
            "raw_path": raw_path,
            "query_string": query,
            "root_path": "",
            "headers": headers,
            "client": self._client,
            "server": self._server,
        }
        exchange = http_exchange.Exchange(
            self._shared, self, scope, keep_alive=keep_alive, expects_continue=expects_continue
        )
        self._deadline = self._began + self._limits.body_seconds
        self._newest = exchange
        if self._active is None:
            self._active = exchange
            exchange.start(self._loop)
        else:
            self._waiting.append(exchange)

    def part(self, content: bytes) -> None:
        """A part of a body; it is discarded when the request has already been answered."""
        if self._newest is None or self._newest.answered:
            self._drain(len(content))
        else:
            self._newest.feed(content)

    def complete(self) -> None:
        """A request is complete: the client has no deadline until it is answered, then the idle timeout."""
        if self._newest is None or self._newest.answered:
            self._deadline = self._loop.time() + self._limits.idle_seconds
        else:
            self._deadline = math.inf
            self._newest.end_body()

    # Called by the exchanges.

    @property
    def has_waiting(self) -> bool:
        """Whether requests wait behind the active one."""
        return bool(self._waiting)

    def answered(self, *, keep_alive: bool) -> None:
        """The active exchange has written its response."""
        if self._account_id is None and self._active is not None:
            self._note_account(self._active.scope)
        self._active = None
        if not keep_alive:
            self._end()
            return
        if self._waiting:
            self._active = self._waiting.popleft()
            self._active.start(self._loop)
        self.body_consumed()
        if self._active is None and self._reader.stage != "head":
            limits = self._limits
            seconds = limits.drain_seconds if self._reader.stage == "body" else limits.idle_seconds
            self._deadline = self._loop.time() + seconds

    def body_consumed(self) -> None:
        """The application has read the buffered body: reading may continue."""
        if self._paused_at is not None:
            self._update_flow()

    # Called by the listener.

    @property
    def idle_since(self) -> float | None:
        """Since when the next byte is awaited, or the response is not read or delayed; None while one is served."""
        if self._stuck_since != math.inf:
            return self._stuck_since
        stage = self._reader.stage
        if self._active is not None:
            scope = self._active.scope
            grace = SLOW_BODY_SECONDS if "account_id" in scope else 0.0
            is_late = stage == "body" and self._loop.time() - self._began >= grace
            return self._began if is_late or "is_delayed" in scope else None
        if stage == "between" and self._newest is not None:
            return self._deadline - self._limits.idle_seconds
        return max(self._opened, self._began)

    def evict(self) -> None:
        """Close, to make room for another. A client that has begun a request is told why."""
        if self.unwritable is not None or self.transport.is_closing():
            self.transport.abort()
            return
        if self._active is not None:
            self._active.disconnect()
        has_arrived = self._has_unread_bytes()
        is_between = self._active is None and self._reader.stage == "between" and not has_arrived
        is_answered = self._refused or is_between or (self._active is not None and self._active.begun)
        if not is_answered:
            refusal = errors.ServiceUnavailable(_TOO_MANY[open_connections.Excess.TOTAL], retry_after=1)
            self._write_refusal(refusal)
        self._refused = True
        if has_arrived:
            self._loop.call_later(LINGER_SECONDS, self.transport.close)
        else:
            self.transport.close()

    def shutdown(self) -> None:
        """Close once the last request received is answered."""
        if self._newest is None and self._loop.time() - self._opened < FIRST_REQUEST_SECONDS:
            return  # the listener calls again with its next sweep
        if self._newest is None or self._newest.answered:
            self.transport.close()
        else:
            self._newest.keep_alive = False

    def sweep(self, now: float) -> None:
        """End the connection if a deadline has passed."""
        if self.unwritable is not None or self.transport.is_closing():
            self._stuck_since = min(self._stuck_since, now)
            if now - self._stuck_since >= self._limits.write_seconds:
                self.transport.abort()
            return
        self._stuck_since = math.inf
        if now < self._deadline or self._paused_at is not None:
            return
        self._deadline = math.inf
        if self._refused or self._reader.stage == "between":
            self.transport.close()
        else:
            what = f"the {self._reader.stage} of the request did not arrive in time; retry with the same key"
            self._refuse(errors.TemporaryFailure(what, retry_after=1))

    # Internal.

    def _note_account(self, scope: http_exchange.Message) -> None:
        """Count for the account of the first authenticated request."""
        self._account_id = scope.get("account_id")
        if self._account_id is not None and self in self._connections:
            self._connections.note_account(self, self._account_id)

    def _has_unread_bytes(self) -> bool:
        """Whether bytes have arrived that the event loop has not read yet."""
        size = fcntl.ioctl(self.transport.get_extra_info("socket").fileno(), termios.FIONREAD, bytes(4))
        return any(size)

    def _update_flow(self) -> None:
        """Stop reading while what was read is not taken; the time of that is not the caller's."""
        newest = self._newest
        # What is left of a body after the answer is drained, so it must not hold up the connection.
        unread = newest is not None and not newest.answered and newest.buffered > self._limits.unread_bytes
        pause = unread or bool(self._waiting) or (self._refused and self._active is not None)
        if pause and self._paused_at is None:
            self._paused_at = self._loop.time()
            self.transport.pause_reading()
        elif self._paused_at is not None and not pause:
            self._deadline += self._loop.time() - self._paused_at
            self._paused_at = None
            self.transport.resume_reading()

    def _drain(self, size: int) -> None:
        self._drained += size
        if self._drained > self._limits.drain_bytes:
            self.transport.close()

    def _refuse(self, error: errors.PostroadError) -> None:
        """Answer an unparseable or incomplete request, after which nothing on this connection can be parsed."""
        self._refused = True
        in_body = self._reader.stage == "body"
        if in_body and self._waiting:
            # Its turn had not come; those before it are good.
            self._waiting.pop()
            in_body = False
        good = self._waiting[-1] if self._waiting else self._active
        if good is not None and not in_body:
            # They still get their answers; then the connection ends.
            good.keep_alive = False
            self._newest = good
            self._update_flow()
        elif in_body and (good is None or good.begun):
            self.transport.close()
        else:
            if good is not None:
                good.disconnect()
            self._write_refusal(error)
            self._end()

    def _write_refusal(self, error: errors.PostroadError) -> None:
        status, fields, content = self._shared.refuse(error)
        head, *_ = http_response.head(status, fields, date=self._shared.date, keep_alive=False, size=len(content))
        self.transport.write(head + content)

    def _end(self) -> None:
        """End the output; a client that still sends gets a half-close first, so that it can read the response."""
        sends = self._refused or self._reader.stage != "between"
        self._refused = True
        self._forget()
        self._update_flow()
        if sends and self.transport.can_write_eof():
            self._deadline = self._loop.time() + self._limits.drain_seconds
            self.transport.write_eof()
        else:
            self.transport.close()

    def _forget(self) -> None:
        self._active = self._newest = None
        self._waiting.clear()


def _address(name: Any) -> tuple[str, int] | None:  # noqa: ANN401 - what the transport says
    return (name[0], name[1]) if isinstance(name, tuple) else None
