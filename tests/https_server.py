"""An HTTPS server on loopback that sends the bytes it is told to, with a certificate of an authority of its own."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Final

import trustme

LOOPBACK: Final = "127.0.0.1"


def response(body: bytes, *headers: str, status: str = "200 OK", media_type: str = "text/plain") -> bytes:
    """A complete response."""
    head = [f"HTTP/1.1 {status}", f"Content-Type: {media_type}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*head, "", ""]).encode() + body


@dataclass(slots=True)
class HttpsServer:
    """The server. `answer` is what every request gets; None: nothing, and the connection stays."""

    context: ssl.SSLContext  # trusts the server's authority
    port: int
    answer: bytes | None = b""
    stays_open: bool = False
    requests: list[bytes] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer.transport), contextlib.suppress(OSError, asyncio.IncompleteReadError):
            self.requests.append(await reader.readuntil(b"\r\n\r\n"))
            if self.answer is not None:
                writer.write(self.answer)
                await writer.drain()
            if self.answer is None or self.stays_open:
                await reader.read()


@contextlib.asynccontextmanager
async def running(*names: str) -> AsyncIterator[HttpsServer]:
    """A server for the time of the block, whose certificate is for these names."""
    authority = trustme.CA()
    ours, theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.configure_trust(ours)
    authority.issue_cert(*names).configure_cert(theirs)
    server = HttpsServer(ours, 0)
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.get_running_loop().create_task(server.serve(reader, writer)))

    listening = await asyncio.start_server(accept, LOOPBACK, 0, ssl=theirs)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await listening.wait_closed()
