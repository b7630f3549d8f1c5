"""Requests as they come over a socket: read whole, kept as they came.

Both the scripted server and the proxy read with this. What is no HTTP/1.1 request is `Malformed`, never guessed at.
"""

import asyncio
import contextlib
import re
import socket
import struct
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

MAX_BODY: Final = 64 * 1024 * 1024
REQUEST_LINE: Final = re.compile(r"(\S+) (\S+) HTTP/1\.1")
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
# A reset instead of a good-bye: linger for no time.
NO_LINGER: Final = struct.pack("ii", 1, 0)


class Malformed(Exception):
    """What came is no request."""


@dataclass(slots=True)
class Request:
    """A request, the names of its headers in lower case. Times are of the monotonic clock."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes
    began_at: float
    # Not later than the last byte of the answer; None where that cannot be said.
    answered_at: float | None = field(default=None)

    def values(self, name: str) -> list[str]:
        """All values of a header; an honest client sends each once."""
        return [value for given, value in self.headers if given == name]

    def value(self, name: str) -> str | None:
        """The value of a header, None when it is not there."""
        return next(iter(self.values(name)), None)


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Request | None:
    """The next request of a connection; None when the client has closed it between requests."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as ended:
        if ended.partial:
            raise Malformed(f"the connection ended within a head: {ended.partial[:200]!r}") from None
        return None
    began_at = time.monotonic()
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    words = REQUEST_LINE.fullmatch(first)
    if words is None:
        raise Malformed(f"not a request line of HTTP/1.1: {first!r}")
    split = (line.partition(":") for line in lines)
    request = Request(
        words[1], words[2], [(name.lower(), value.strip(" \t")) for name, _, value in split], b"", began_at
    )
    if (request.value("expect") or "").lower() == "100-continue":
        writer.write(CONTINUE)
    request.body = await _read_body(reader, request)
    return request


async def _read_body(reader: asyncio.StreamReader, request: Request) -> bytes:
    try:
        if (request.value("transfer-encoding") or "").lower() == "chunked":
            return await _read_chunks(reader)
        length = int(request.value("content-length") or "0")
        if length > MAX_BODY:
            raise Malformed(f"a body of {length} bytes")
        return await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ValueError) as problem:
        raise Malformed(f"the body of {request.method} {request.path} is not whole: {problem}") from None


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while length := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
        body += await reader.readexactly(length)
        await reader.readexactly(2)
        if len(body) > MAX_BODY:
            raise Malformed("a body without end")
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass
    return body


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection so that the other side sees a failure."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
    writer.transport.abort()


class Listener:
    """A socket that is served until `close`, each connection by a task of its own."""

    def __init__(self, serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> None:
        self._serve = serve
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._is_closed = False

    async def open(self, host: str = "127.0.0.1") -> int:
        """Listen on a free port of the host; returns the port."""
        self._server = await asyncio.start_server(self._accept, host, 0, limit=MAX_BODY)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def open_on(self, sock: socket.socket) -> None:
        """Listen on a socket that is bound already."""
        self._server = await asyncio.start_server(self._accept, sock=sock, limit=MAX_BODY)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection. A plain function: a task that is cancelled before its first step runs no `finally`."""
        task = asyncio.ensure_future(self._work(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._end(done, writer))
        if self._is_closed:
            task.cancel()

    async def _work(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Clients that go away are what many scenarios are about.
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            await self._serve(reader, writer)

    def _end(self, task: asyncio.Task[None], writer: asyncio.StreamWriter) -> None:
        self._tasks.discard(task)
        writer.transport.abort()

    async def close(self) -> None:
        """Listen no more, and end every connection."""
        self._is_closed = True
        if self._server is not None:
            self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
