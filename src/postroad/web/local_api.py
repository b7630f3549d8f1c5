"""Requests to an application of this process, without a socket: the commands on the host use it."""

import asyncio
from collections.abc import Mapping, MutableMapping
from typing import Any

from postroad.web import application


async def exchange(
    app: application.AsgiApp, scope: application.Scope, body: bytes
) -> tuple[MutableMapping[str, Any], bytes]:
    """The start of the response to one request, and its body, which has to be small."""
    parts, answer = [body], bytearray()
    started: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        if not parts:
            await asyncio.get_running_loop().create_future()  # the client stays until the answer is there
        return {"type": "http.request", "body": parts.pop(), "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            started.append(message)
        else:
            answer.extend(message.get("body", b""))

    await app(scope, receive, send)
    return started[0], bytes(answer)


class LocalApi:
    """Requests with one credential, as if they came from the same client."""

    def __init__(self, app: application.AsgiApp, *, authorization: bytes, client_address: str) -> None:
        self._app = app
        self._authorization = authorization
        self._client_address = client_address

    async def send(self, method: str, target: str, *, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """The status and the body of the response."""
        path, _, query = target.partition("?")
        fields = [(name.lower().encode("latin-1"), value.encode()) for name, value in headers.items()]
        scope: application.Scope = {
            "type": "http",
            "method": method,
            "raw_path": path.encode("latin-1"),
            "query_string": query.encode("latin-1"),
            "headers": [(b"authorization", self._authorization), (b"content-length", b"%d" % len(body)), *fields],
            "client": (self._client_address, 0),
        }
        start, answer = await exchange(self._app, scope, body)
        return start["status"], answer
