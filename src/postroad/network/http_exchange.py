"""One request and its response: the `receive` and `send` of an ASGI application.

The connection creates an exchange when a head is complete, feeds it the body, and starts it when earlier responses have
been written. From then on only the exchange writes to the transport, until it calls `answered`.

    waiting --start--> in flight --send, the last body message--> answered
    waiting or in flight --disconnect--> gone: `receive` returns http.disconnect, `send` does nothing

The response start is held back until the first body message, as ASGI demands; both leave in one write. If the
application fails, the error object of `refuse` is sent instead, or, too late for that, the connection is closed.

The application may tell in the scope for whom the listener counts the connection: `account_id` when the request is
authenticated, and `is_delayed` while its answer only waits, to slow a flood down.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol

from postroad import errors
from postroad.network import http_response
from postroad.network.http_response import Framing

Message = MutableMapping[str, Any]
Application = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]
Refuse = Callable[[errors.PostroadError], tuple[int, list[http_response.Field], bytes]]


class HttpListenerState:
    """State shared by the connections of a listener."""

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

    @property
    def has_waiting(self) -> bool:
        """Whether further requests were received behind the one that is being answered."""

    def answered(self, *, keep_alive: bool) -> None:
        """The response is written."""

    def body_consumed(self) -> None:
        """The application has read the buffered body."""


class Exchange:
    """A request and its response."""

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
        "_start",
        "_task",
        "answered",
        "begun",
        "buffered",
        "keep_alive",
        "scope",
    )

    def __init__(
        self,
        shared: HttpListenerState,
        connection: Connection,
        scope: Message,
        *,
        keep_alive: bool,
        expects_continue: bool,
    ) -> None:
        self._shared = shared
        self._connection = connection
        self.scope = scope
        self.keep_alive = keep_alive
        self._task: asyncio.Task[None] | None = None
        # The request's body.
        self._expects_continue = expects_continue
        self._parts: list[bytes] = []
        self.buffered = 0
        self._is_body_complete = False
        self._is_body_consumed = False
        # Created on the first wait: most bodies are complete before the application asks.
        self._body_event: asyncio.Event | None = None
        # The response.
        self._start: Message | None = None
        self._framing = Framing.NOTHING
        self._left = 0
        self.begun = False
        self.answered = False
        self._gone = False

    # Called by the connection.

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Hand the request to the application."""
        self._shared.in_flight.add(self)
        self._task = loop.create_task(self._run())

    def feed(self, part: bytes) -> None:
        """A part of the body."""
        self._parts.append(part)
        self._expects_continue = False
        self.buffered += len(part)
        if self._body_event is not None:
            self._body_event.set()

    def end_body(self) -> None:
        """The body is complete."""
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

    async def receive(self) -> Message:
        """The next part of the body, or, when there is none, the end of the connection."""
        while not (self._gone or self.answered):
            if self._parts or (self._is_body_complete and not self._is_body_consumed):
                return self._take()
            if self._expects_continue:
                self._expects_continue = False
                if not self.begun:
                    self._connection.transport.write(http_response.CONTINUE)
            if self._body_event is None:
                self._body_event = asyncio.Event()
            self._body_event.clear()
            await self._body_event.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """The start of the response, or a part of its body; waits while the caller does not read."""
        while (unwritable := self._connection.unwritable) is not None and not self._gone:
            await unwritable.wait()
        if self._gone:
            return
        kind = message["type"]
        if kind == "http.response.body" and self._start is not None and not self.answered:
            self._write(message.get("body", b""), more=message.get("more_body", False))
        elif kind == "http.response.start" and self._start is None:
            self._start = message
        else:
            raise RuntimeError(f"{kind}: unexpected ASGI message")

    # Internal.

    async def _run(self) -> None:
        shared = self._shared
        try:
            await shared.application(self.scope, self.receive, self.send)
            if not (self.answered or self._gone):
                raise RuntimeError("the application returned before its response was complete")  # noqa: TRY301
        except asyncio.CancelledError:
            self._fail(errors.ServiceUnavailable("the service is stopping", retry_after=1))
        except Exception as problem:  # noqa: BLE001 - whatever it is, it is logged and answered
            context = {"message": "an ASGI application failed", "exception": problem}
            asyncio.get_running_loop().call_exception_handler(context)
            self._fail(errors.InternalError("internal error; it has been logged"))
        finally:
            shared.in_flight.discard(self)
            if shared.changed is not None:
                shared.changed.set()

    def _fail(self, error: errors.PostroadError) -> None:
        if self._gone or self.answered:
            return
        if self.begun:
            # A partial response must not look complete.
            self._connection.transport.close()
            return
        self.keep_alive = False
        status, fields, content = self._shared.refuse(error)
        self._start = {"status": status, "headers": fields}
        self._write(content, more=False)

    def _take(self) -> Message:
        parts = self._parts
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        self.buffered = 0
        self._is_body_consumed = self._is_body_complete
        self._connection.body_consumed()
        return {"type": "http.request", "body": body, "more_body": not self._is_body_complete}

    def _write(self, body: bytes, *, more: bool) -> None:
        head = b"" if self.begun else self._head(None if more else len(body))
        if self._framing is Framing.LENGTH:
            self._left -= len(body)
            if self._left < 0 or (self._left > 0 and not more):
                raise RuntimeError("the content of a response is not as long as its Content-Length")
        elif self._framing is Framing.CHUNKED:
            body = http_response.chunk(body, last=not more)
        elif self._framing is Framing.NOTHING:
            body = b""
        self.begun = True
        self._connection.transport.write(head + body)
        if not more:
            self.answered = True
            if self._body_event is not None:
                self._body_event.set()
            self._connection.answered(keep_alive=self.keep_alive)

    def _head(self, size: int | None) -> bytes:
        start, scope = self._start or {}, self.scope
        fields = start.get("headers", ())
        # RFC 9110 section 10.1.1: a body that was never asked for must not be taken for the next request.
        unasked = self._expects_continue and not self._is_body_complete
        if self._shared.is_draining and not self._connection.has_waiting:
            self.keep_alive = False
        content, self._framing, self._left, self.keep_alive = http_response.head(
            start["status"],
            fields if isinstance(fields, list) else [*fields],
            date=self._shared.date,
            keep_alive=self.keep_alive and not unasked,
            size=size,
            method=scope["method"],
            version=scope["http_version"],
        )
        return content
