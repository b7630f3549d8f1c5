"""Requests to an application of this process, without a socket: the commands on the host use it."""

import asyncio
from collections.abc import Mapping, Sequence

from postroad.network.http import http_messages, http_server


class LocalRequest:
    """A complete request, and its response, kept in memory."""

    def __init__(
        self, method: str, target: bytes, headers: http_messages.Headers, body: bytes, *, client_address: str
    ) -> None:
        self.method = method
        self.raw_path, _, self.query = target.partition(b"?")
        self.headers = headers
        self.peer = client_address
        self.account_id: str | None = None
        self.is_delayed = False
        self.status = 0
        self.content = b""
        self._body: bytes | None = body

    def whole_body(self, *, most: int | None = None) -> bytes | None:
        if most is not None and self._body is not None and len(self._body) > most:
            return None
        body, self._body = self._body, None
        return body

    async def receive(self) -> tuple[bytes, bool]:
        body = self.whole_body()
        if body is None:
            raise http_server.Disconnected
        return body, False

    async def until_disconnected(self) -> None:
        """The client stays until the response is there."""
        await asyncio.get_running_loop().create_future()

    def respond(
        self,
        status: int,
        fields: Sequence[http_messages.Field],  # noqa: ARG002 - nobody here reads them
        content: bytes,
        *,
        has_more: bool = False,  # noqa: ARG002 - the application returns at the end
    ) -> None:
        self.status = status
        self.content = content

    async def send(self, part: bytes, *, has_more: bool) -> None:  # noqa: ARG002 - as in `respond`
        self.content += part


class LocalApi:
    """Requests with one credential, as if they came from the same client."""

    def __init__(self, app: http_server.Application, *, authorization: bytes, client_address: str) -> None:
        self._app = app
        self._authorization = authorization
        self._client_address = client_address

    async def send(self, method: str, target: str, *, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """The status and the body of the response."""
        fields = [(name.lower().encode("latin-1"), value.encode()) for name, value in headers.items()]
        own = [(b"authorization", self._authorization), (b"content-length", b"%d" % len(body))]
        request = LocalRequest(
            method, target.encode("latin-1"), [*own, *fields], body, client_address=self._client_address
        )
        await self._app(request)
        return request.status, request.content
