"""Our applications as httpx calls them, and the other way round: applications of a test that are written for ASGI."""

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any
from urllib import parse

from postroad.network.http import http_messages, http_server

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Message, Receive, Send], Awaitable[None]]


class AsgiRequest:
    """A request of ASGI as our applications take it."""

    def __init__(self, scope: Message, receive: Receive, send: Send) -> None:
        self.method: str = scope["method"]
        self.raw_path: bytes = scope["raw_path"]
        self.query: bytes = scope["query_string"]
        self.headers: http_messages.Headers = list(scope["headers"])
        self.peer: str = scope["client"][0] if scope.get("client") else ""
        self.account_id: str | None = None
        self.is_delayed = False
        self._receive = receive
        self._send = send
        self._unsent: list[Message] = []

    def whole_body(self, *, most: int | None = None) -> bytes | None:
        """Nothing is known to be there before it is received."""
        return None

    async def receive(self) -> tuple[bytes, bool]:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise http_server.Disconnected
        return message.get("body", b""), message.get("more_body", False)

    async def until_disconnected(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def respond(
        self, status: int, fields: Sequence[http_messages.Field], content: bytes, *, has_more: bool = False
    ) -> None:
        self._unsent.append({"type": "http.response.start", "status": status, "headers": list(fields)})
        self._unsent.append({"type": "http.response.body", "body": content, "more_body": has_more})

    async def send(self, part: bytes, *, has_more: bool) -> None:
        await self.flush()
        await self._send({"type": "http.response.body", "body": part, "more_body": has_more})

    async def flush(self) -> None:
        unsent, self._unsent = self._unsent, []
        for message in unsent:
            await self._send(message)


def of(application: http_server.Application) -> Asgi:
    """An application of ours, for a client that speaks ASGI."""

    async def serve(scope: Message, receive: Receive, send: Send) -> None:
        request = AsgiRequest(scope, receive, send)
        await application(request)
        await request.flush()

    return serve


class _Scope(dict[str, Any]):
    """A scope whose application may tell the listener something."""

    def __init__(self, request: http_server.Request) -> None:
        path = parse.unquote(request.raw_path.decode("ascii"))
        super().__init__(
            type="http",
            http_version=getattr(request, "_version", "1.1"),
            method=request.method,
            path=path,
            raw_path=request.raw_path,
            query_string=request.query,
            headers=request.headers,
            client=(request.peer, 0) if request.peer else None,
        )
        self._request = request

    def __setitem__(self, name: str, value: Any) -> None:  # noqa: ANN401 - as ASGI has it
        super().__setitem__(name, value)
        setattr(self._request, name, value)


def served(application: Asgi) -> http_server.Application:
    """An application of a test, for a listener of ours."""

    async def serve(request: http_server.Request) -> None:
        started: Message = {}

        async def receive() -> Message:
            try:
                part, has_more = await request.receive()
            except http_server.Disconnected:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": part, "more_body": has_more}

        async def send(message: Message) -> None:
            has_more = message.get("more_body", False)
            if message["type"] == "http.response.start":
                started.update(message)
            elif "is_begun" in started:
                await request.send(message.get("body", b""), has_more=has_more)
            else:
                started["is_begun"] = True
                fields = list(started.get("headers", ()))
                request.respond(started["status"], fields, message.get("body", b""), has_more=has_more)

        await application(_Scope(request), receive, send)

    return serve
