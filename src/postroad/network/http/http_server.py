"""The HTTP/1.1 server: a listener, its connections, and one exchange with the application after the other."""

import asyncio
import email.utils
import fcntl
import math
import ssl
import termios
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, Protocol

from postroad import errors
from postroad.network import listener
from postroad.network.http import http_messages
from postroad.network.http.http_messages import Framing
from postroad.network.tls import server_tls

# One request and its response. The connection creates an exchange when a request has arrived, or its head, and starts
# it when earlier responses have been written: as a task, which is in flight from its first step on. Once started, only
# the exchange writes to the transport, until it calls `responded`.
#
#     waiting --start--> in flight --the last part of the response--> responded
#     waiting or in flight --disconnect--> gone: `receive` raises Disconnected, the response is dropped
#
# If the application fails, the error object of `refuse` is sent instead, or, too late for that, the connection is
# closed.


class Disconnected(Exception):
    """The client disconnected before its request was complete."""


class Request(Protocol):
    """What an application is called with: a request, and how to respond to it."""

    method: str
    raw_path: bytes
    query: bytes
    headers: http_messages.Headers
    # The address of the peer; "" if it has none.
    peer: str
    # Set by the application: for whom the connection counts, and whether the response is delayed to slow a flood.
    account_id: str | None
    is_delayed: bool

    def whole_body(self, *, most: int | None = None) -> bytes | None:
        """The body, once, if all of it is there, and is at most so long; otherwise None."""

    async def receive(self) -> tuple[bytes, bool]:
        """The next part of the body, and whether there is more. Raises Disconnected."""

    async def until_disconnected(self) -> None:
        """Wait until the client is gone, or has its response."""

    def respond(
        self, status: int, fields: Sequence[http_messages.Field], content: bytes, *, has_more: bool = False
    ) -> None:
        """The response, or the head and the first part of one that `send` goes on with."""

    async def send(self, part: bytes, *, has_more: bool) -> None:
        """A further part of the response; waits while the client does not read."""


Application = Callable[[Request], Coroutine[Any, Any, None]]
Refuse = Callable[[errors.PostroadError], tuple[int, list[http_messages.Field], bytes]]


class HttpListenerState:
    __slots__ = ("application", "changed", "date", "in_flight", "is_draining", "refuse")

    def __init__(self, application: Application, refuse: Refuse) -> None:
        self.application = application
        self.refuse = refuse
        self.date = b""
        self.in_flight: set[Exchange] = set()
        # Set before the listener stops: each connection ends after its next response.
        self.is_draining = False
        # Exists while the listener stops and waits for exchanges and connections to end.
        self.changed: asyncio.Event | None = None


class Connection(Protocol):
    """What an exchange needs of its connection."""

    transport: asyncio.Transport
    unwritable: asyncio.Event | None
    # Since when nothing is read; None while it is.
    paused_at: float | None

    @property
    def has_waiting(self) -> bool:
        """Whether further requests were received behind the one that is being responded."""

    def responded(self, *, keep_alive: bool) -> None:
        """The response is written."""

    def body_consumed(self) -> None:
        """The application has read the buffered body of a connection that is paused."""


class Exchange:
    __slots__ = (
        "_body_event",
        "_connection",
        "_expects_continue",
        "_framing",
        "_gone",
        "_is_body_complete",
        "_is_body_consumed",
        "_left",
        "_parts",
        "_shared",
        "_task",
        "_version",
        "account_id",
        "begun",
        "buffered",
        "headers",
        "is_delayed",
        "keep_alive",
        "method",
        "peer",
        "query",
        "raw_path",
        "responded",
    )

    def __init__(
        self,
        shared: HttpListenerState,
        connection: Connection,
        head: http_messages.Head,
        content: bytes,
        *,
        is_complete: bool,
        peer: str,
    ) -> None:
        self._shared = shared
        self._connection = connection
        self.method = head.method.decode("ascii")
        self.raw_path = head.path
        self.query = head.query
        self.headers = head.headers
        self.peer = peer
        self.account_id: str | None = None
        self.is_delayed = False
        self.keep_alive = head.keep_alive
        self._version = head.version
        self._task: asyncio.Task[None] | None = None
        # The request's body.
        self._expects_continue = head.expects_continue and not content
        self._parts = [content] if content else []
        self.buffered = len(content)
        self._is_body_complete = is_complete
        self._is_body_consumed = False
        # Created on the first wait: most bodies are complete before the application asks.
        self._body_event: asyncio.Event | None = None
        # The response.
        self._framing = Framing.NOTHING
        self._left = 0
        self.begun = False
        self.responded = False
        self._gone = False

    # Called by the connection.

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._task = loop.create_task(self._run())

    def feed(self, part: bytes) -> None:
        self._parts.append(part)
        self._expects_continue = False
        self.buffered += len(part)
        if self._body_event is not None:
            self._body_event.set()

    def end_body(self) -> None:
        self._is_body_complete = True
        if self._body_event is not None:
            self._body_event.set()

    def disconnect(self) -> None:
        """The connection is closed: no more input, and no response."""
        self._gone = True
        if self._body_event is not None:
            self._body_event.set()

    def cancel(self) -> None:
        """Cancel the application; it may still answer."""
        if self._task is not None:
            self._task.cancel()

    # Called by the application.

    def whole_body(self, *, most: int | None = None) -> bytes | None:
        if not self._is_body_complete or self._is_body_consumed or self._gone:
            return None
        if most is not None and self.buffered > most:
            return None
        return self._take()

    async def receive(self) -> tuple[bytes, bool]:
        while not (self._gone or self.responded):
            if self._parts or (self._is_body_complete and not self._is_body_consumed):
                return self._take(), not self._is_body_complete
            await self._wait_for_body()
        raise Disconnected

    async def until_disconnected(self) -> None:
        while not (self._gone or self.responded):
            if self._parts:
                self._take()
            await self._wait_for_body()

    def respond(
        self, status: int, fields: Sequence[http_messages.Field], content: bytes, *, has_more: bool = False
    ) -> None:
        if self._gone:
            return
        if self.begun:
            raise RuntimeError("a request has one response")
        # RFC 9110 section 10.1.1: a body that was never asked for must not be taken for the next request.
        unasked = self._expects_continue and not self._is_body_complete
        if self._shared.is_draining and not self._connection.has_waiting:
            self.keep_alive = False
        head, self._framing, self._left, self.keep_alive = http_messages.head(
            status,
            fields,
            date=self._shared.date,
            keep_alive=self.keep_alive and not unasked,
            size=None if has_more else len(content),
            method=self.method,
            version=self._version,
        )
        self._write(head, content, has_more=has_more)

    async def send(self, part: bytes, *, has_more: bool) -> None:
        await self._writable()
        if self._gone:
            return
        if self.responded or not self.begun:
            raise RuntimeError("a part of a response that is over, or has not begun")
        self._write(b"", part, has_more=has_more)

    # Internal.

    async def _run(self) -> None:
        shared = self._shared
        shared.in_flight.add(self)
        try:
            if self._connection.unwritable is not None:
                # Responses to somebody who does not read would pile up.
                await self._writable()
            await shared.application(self)
            if not (self.responded or self._gone):
                raise RuntimeError("the application returned before its response was complete")  # noqa: TRY301
        except asyncio.CancelledError:
            self._fail(errors.ServiceUnavailable("the service is stopping", retry_after=1))
        except Exception as problem:  # noqa: BLE001 - whatever it is, it is logged and responded
            # Answered first: a handler that fails must not leave the caller waiting.
            self._fail(errors.InternalError("internal error; it has been logged"))
            context = {"message": "an application failed", "exception": problem}
            asyncio.get_running_loop().call_exception_handler(context)
        finally:
            shared.in_flight.discard(self)
            if shared.changed is not None:
                shared.changed.set()

    def _fail(self, error: errors.PostroadError) -> None:
        if self._gone or self.responded:
            return
        if self.begun:
            # A partial response must not look complete.
            self._connection.transport.close()
            return
        self.keep_alive = False
        self.respond(*self._shared.refuse(error))

    async def _writable(self) -> None:
        while (unwritable := self._connection.unwritable) is not None and not self._gone:
            await unwritable.wait()

    async def _wait_for_body(self) -> None:
        if self._expects_continue:
            self._expects_continue = False
            if not self.begun:
                self._connection.transport.write(http_messages.CONTINUE)
        if self._body_event is None:
            self._body_event = asyncio.Event()
        self._body_event.clear()
        await self._body_event.wait()

    def _take(self) -> bytes:
        parts = self._parts
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        self._parts = []
        self.buffered = 0
        self._is_body_consumed = self._is_body_complete
        if self._connection.paused_at is not None:
            self._connection.body_consumed()
        return body

    def _write(self, head: bytes, body: bytes, *, has_more: bool) -> None:
        if self._framing is Framing.LENGTH:
            self._left -= len(body)
            if self._left < 0 or (self._left > 0 and not has_more):
                raise RuntimeError("the content of a response is not as long as its Content-Length")
        elif self._framing is Framing.CHUNKED:
            body = http_messages.chunk(body, last=not has_more)
        elif self._framing is Framing.NOTHING:
            body = b""
        self.begun = True
        self._connection.transport.write(head + body)
        if not has_more:
            self.responded = True
            if self._body_event is not None:
                self._body_event.set()
            self._connection.responded(keep_alive=self.keep_alive)


_TOO_MANY: Final = {
    listener.Excess.TOTAL: "too many connections; try again shortly",
    listener.Excess.PER_ADDRESS: "too many connections from your address; close some, or try again shortly",
}
# The first request of a connection that was accepted just before a stop is on its way: closing would lose it.
FIRST_REQUEST_SECONDS: Final = 1.0
# A small body arrives at once, and few large ones arrive at a time (web/request_reader.py): an account that takes
# longer than this may lose the connection to a newcomer when the listener is full. A stranger has no such time.
SLOW_BODY_SECONDS: Final = 10.0
# To read a request that had arrived, so that closing does not reset the connection before its refusal is read.
LINGER_SECONDS: Final = 0.1


class HttpProtocol(asyncio.Protocol):
    """A connection; it is in `connections` while it is open."""

    transport: asyncio.Transport

    def __init__(
        self,
        shared: HttpListenerState,
        *,
        limits: http_messages.Limits,
        connections: listener.OpenConnections,
        on_admitted: Callable[[], None] | None = None,
    ) -> None:
        """`on_admitted` is called first, to release the slot that the handshake held."""
        self._shared = shared
        self._on_admitted = on_admitted
        self._limits = limits
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._reader = http_messages.RequestParser(self, limits, clock=self._loop.time)
        self._peer = ""
        self._newest: Exchange | None = None
        self._active: Exchange | None = None
        self._waiting: deque[Exchange] = deque()
        self._refused = False
        self._drained = 0
        # Exists while the client does not read; set when it has read, or is gone.
        self.unwritable: asyncio.Event | None = None
        self._opened = 0.0
        self._deadline = math.inf
        self.paused_at: float | None = None
        self._stuck_since = math.inf
        self._account_id: str | None = None

    # Called by the transport.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A new connection; one over the limit is refused at once."""
        self.transport = transport
        name = transport.get_extra_info("peername")
        self._peer = name[0] if isinstance(name, tuple) else ""
        if self._on_admitted is not None:
            self._on_admitted()
        self._opened = self._loop.time()
        self._deadline = self._opened + self._limits.head_seconds
        excess = self._connections.enter(self, self._peer)
        if excess is not None:
            self._refused = True
            self._write_refusal(errors.ServiceUnavailable(_TOO_MANY[excess], retry_after=1))
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the cause does not matter
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
        if self._refused:
            self._drain(len(data))
            return
        reader = self._reader
        began_at = reader.began_at
        try:
            reader.feed(data)
        except errors.PostroadError as error:
            self._refuse(error)
        else:
            if reader.stage == "head" and reader.began_at != began_at:
                self._deadline = reader.began_at + self._limits.head_seconds
        if reader.stage != "between" or self._waiting or self.paused_at is not None:
            self._update_flow()

    # Called by the parser.

    def request(self, head: http_messages.Head, content: bytes, *, is_complete: bool) -> None:
        """A whole request, or its head. A client whose request is whole has no deadline."""
        exchange = Exchange(self._shared, self, head, content, is_complete=is_complete, peer=self._peer)
        self._deadline = math.inf if is_complete else self._reader.began_at + self._limits.body_seconds
        self._drained = 0
        self._newest = exchange
        if self._active is None:
            self._active = exchange
            exchange.start(self._loop)
        else:
            self._waiting.append(exchange)
            self._reader.is_full = len(self._waiting) >= self._limits.pipelined_requests

    def part(self, content: bytes) -> None:
        """A part of a body; it is discarded when the request has already been responded."""
        if self._newest is None or self._newest.responded:
            self._drain(len(content))
        else:
            self._newest.feed(content)

    def complete(self) -> None:
        """A request is complete: the client has no deadline until it is responded, then the idle timeout."""
        if self._newest is None or self._newest.responded:
            self._deadline = self._loop.time() + self._limits.idle_seconds
        else:
            self._deadline = math.inf
            self._newest.end_body()

    # Called by the exchanges.

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def responded(self, *, keep_alive: bool) -> None:
        if self._account_id is None and self._active is not None and self._active.account_id is not None:
            self._note_account(self._active.account_id)
        self._active = None
        if not keep_alive:
            self._end()
            return
        if self._waiting:
            self._active = self._waiting.popleft()
            self._reader.is_full = False
            self._active.start(self._loop)
        if self.paused_at is not None:
            self._update_flow()
        if self._active is None and self._reader.stage != "head":
            limits = self._limits
            seconds = limits.drain_seconds if self._reader.stage == "body" else limits.idle_seconds
            self._deadline = self._loop.time() + seconds

    def body_consumed(self) -> None:
        self._update_flow()

    # Called by the listener.

    @property
    def idle_since(self) -> float | None:
        """Since when the next byte is awaited, or the response is not read or delayed; None while one is served."""
        if self._stuck_since != math.inf:
            return self._stuck_since
        stage = self._reader.stage
        if self._active is not None:
            began = self._reader.began_at
            grace = 0.0 if self._active.account_id is None else SLOW_BODY_SECONDS
            is_late = stage == "body" and self._loop.time() - began >= grace
            return began if is_late or self._active.is_delayed else None
        if stage == "between" and self._newest is not None:
            return self._deadline - self._limits.idle_seconds
        return max(self._opened, self._reader.began_at)

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
            refusal = errors.ServiceUnavailable(_TOO_MANY[listener.Excess.TOTAL], retry_after=1)
            self._write_refusal(refusal)
        self._refused = True
        if has_arrived:
            self._loop.call_later(LINGER_SECONDS, self.transport.close)
        else:
            self.transport.close()

    def shutdown(self) -> None:
        """Close once the last request received is responded."""
        if self._newest is None and self._loop.time() - self._opened < FIRST_REQUEST_SECONDS:
            return  # the listener calls again with its next sweep
        if self._newest is None or self._newest.responded:
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
        if now < self._deadline or self.paused_at is not None:
            return
        self._deadline = math.inf
        if self._refused or self._reader.stage == "between":
            self.transport.close()
        else:
            what = f"the {self._reader.stage} of the request did not arrive in time; retry with the same key"
            self._refuse(errors.TemporaryFailure(what, retry_after=1))

    # Internal.

    def _note_account(self, account_id: str) -> None:
        """Count for the account of the first authenticated request."""
        self._account_id = account_id
        if self in self._connections:
            self._connections.note_account(self, account_id)

    def _has_unread_bytes(self) -> bool:
        """Whether bytes have arrived that the event loop has not read yet."""
        size = fcntl.ioctl(self.transport.get_extra_info("socket").fileno(), termios.FIONREAD, bytes(4))
        return any(size)

    def _update_flow(self) -> None:
        """Stop reading while what was read is not taken; the time of that is not the caller's."""
        newest = self._newest
        # What is left of a body after the answer is drained, so it must not hold up the connection.
        unread = newest is not None and not newest.responded and newest.buffered > self._limits.unread_bytes
        pause = unread or bool(self._waiting) or (self._refused and self._active is not None)
        if pause and self.paused_at is None:
            self.paused_at = self._loop.time()
            self.transport.pause_reading()
        elif self.paused_at is not None and not pause:
            self._deadline += self._loop.time() - self.paused_at
            self.paused_at = None
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
            self._reader.is_full = False
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
        head, *_ = http_messages.head(status, fields, date=self._shared.date, keep_alive=False, size=len(content))
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
        self._reader.is_full = False


class HttpListener(listener.Listener):
    def __init__(
        self,
        application: Application,
        *,
        refuse: Refuse,
        limits: http_messages.Limits | None = None,
        is_exempt: Callable[[str], bool] | None = None,
        tls: Callable[[], ssl.SSLContext | None] | None = None,
        challenges: server_tls.AlpnChallenges | None = None,
        refresh: Callable[[], None] | None = None,
        sweep_seconds: float = listener.SWEEP_SECONDS,
    ) -> None:
        """`is_exempt` says which addresses may have any number of connections.

        With `tls` it serves HTTPS: `tls` is called for each handshake and returns None while there is no certificate,
        `refresh` once a second to check for a renewed one. `challenges` are those of an authority.
        """
        bounds = limits or http_messages.Limits()
        connections = listener.OpenConnections(
            total=bounds.connections, per_address=bounds.connections_per_address, is_exempt=is_exempt
        )
        self._shared = shared = HttpListenerState(application, refuse)
        self._refresh = refresh

        def make_session(on_admitted: Callable[[], None] | None = None) -> asyncio.Protocol:
            return HttpProtocol(shared, limits=bounds, connections=connections, on_admitted=on_admitted)

        handshakes = None
        if tls is not None:
            handshakes = server_tls.Handshakes(
                tls,
                make_session,
                connections=connections,
                state=shared,
                seconds=bounds.handshake_seconds,
                challenges=challenges,
            )
        super().__init__(
            lambda: make_session() if handshakes is None else server_tls.TlsAccept(handshakes),
            shared=shared,
            connections=connections,
            working=shared.in_flight,
            sweep_seconds=sweep_seconds,
        )

    def on_sweep(self) -> None:
        """Update the date (RFC 9110 section 6.6.1), and check for a renewed certificate."""
        self._shared.date = b"date: " + email.utils.formatdate(time.time(), usegmt=True).encode()
        if self._refresh is not None:
            self._refresh()
