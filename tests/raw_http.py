"""HTTP by hand, for requests that no honest client would send: bytes out, bytes in, nothing corrected on the way."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

# Long enough for a loaded machine; a test that waits this long has failed.
TIMEOUT_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Response:
    """A response as it came."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:  # noqa: ANN401 - any JSON value
        return json.loads(self.body)


class Connection:
    """One connection to a server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            self.writer.write(data)
            await self.writer.drain()

    async def response(self, *, has_body: bool = True) -> Response:
        """The next response."""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            fields = [line.partition(": ") for line in head[1:] if line]
            headers = {name.lower(): value for name, _, value in fields}
            assert len(fields) == len(headers) or "www-authenticate" in headers, head
            length = int(headers.get("content-length", "0")) if has_body else 0
            return Response(int(head[0].split()[1]), headers, await self.reader.readexactly(length))

    async def rest(self) -> bytes:
        """Everything until the server closes the connection."""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            with contextlib.suppress(ConnectionError):
                return await self.reader.read()
            return b""


@contextlib.asynccontextmanager
async def connect(address: tuple[str, int], *, local: tuple[str, int] | None = None) -> AsyncIterator[Connection]:
    """A new connection, closed at the end; `local` is the address to connect from."""
    reader, writer = await asyncio.open_connection(*address, local_addr=local)
    try:
        yield Connection(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def exchange(address: tuple[str, int], request: bytes) -> Response:
    """The response to one request on a connection of its own."""
    async with connect(address) as connection:
        await connection.send(request)
        return await connection.response(has_body=not request.startswith(b"HEAD"))


def post(path: str, body: bytes, *fields: str, length: int | None = None) -> bytes:
    """A POST of JSON, with further header fields; `length` lies about the body's."""
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: postroad.test",
        "Content-Type: application/json",
        f"Content-Length: {len(body) if length is None else length}",
        *fields,
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


def get(path: str, *fields: str, method: str = "GET") -> bytes:
    """A request without a body."""
    return ("\r\n".join([f"{method} {path} HTTP/1.1", "Host: postroad.test", *fields]) + "\r\n\r\n").encode("latin-1")
