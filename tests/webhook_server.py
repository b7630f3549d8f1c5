"""Endpoints of webhooks on loopback: real sockets, real TLS, and whatever answer a test wants, the broken too.

An answer is the bytes of a response as they go over the wire (`ok` makes a proper one), or a function that is given the
request and returns them, at once or awaited. None: it never answers. Empty bytes: it hangs up. An asynchronous
iterator: piece by piece. The connection stays for the next request unless the answer says `Connection: close`. An
answer may be changed while the endpoint runs.
"""

import asyncio
import contextlib
import inspect
import itertools
import pathlib
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

import trustme

# Tests call this one public, by `webhooks.allow_private`; 127.0.0.1 stays private.
PUBLIC: Final = "127.0.0.2"
NAME: Final = "hooks.example.org"
MAX_HEAD: Final = 1024 * 1024
WITHOUT_BODY: Final = (204, 304)

Raw = bytes | AsyncIterator[bytes] | None


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """A request. The names of headers are in lower case; connections are counted from 1."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int


Answer = Raw | Callable[[ReceivedRequest], Raw | Awaitable[Raw]]


def ok(status: int = 200, body: bytes = b"ok", *headers: str) -> bytes:
    """A complete response; headers as `Name: value`."""
    phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else "Something"
    lines = [f"HTTP/1.1 {status} {phrase}", *headers]
    if status in WITHOUT_BODY:
        return "\r\n".join([*lines, "", ""]).encode()
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


OK: Final = ok()


@dataclass(slots=True)
class WebhookServer:
    """The endpoint. Connections count when TCP accepts them, before any TLS."""

    host: str
    port: int
    names: tuple[str, ...]
    tls: ssl.SSLContext | None
    ca_file: str
    answer: Answer = OK
    requests: list[ReceivedRequest] = field(default_factory=list)
    connections: int = 0
    open_connections: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def url(self) -> str:
        """By name over TLS, which needs DNS; else by address."""
        return self.at(self.names[0]) if self.tls is not None and self.names else self.literal_url

    @property
    def literal_url(self) -> str:
        """By address, for which the certificate is good as well."""
        return self.at(f"[{self.host}]" if ":" in self.host else self.host)

    def at(self, host: str, target: str = "/hook") -> str:
        """By some host."""
        return f"{'http' if self.tls is None else 'https'}://{host}:{self.port}{target}"

    async def received(self, count: int) -> list[ReceivedRequest]:
        """The requests, as soon as there are this many."""
        async with self.changed:
            await self.changed.wait_for(lambda: len(self.requests) >= count)
        return self.requests

    async def left_alone(self) -> None:
        """When no connection is open."""
        async with self.changed:
            await self.changed.wait_for(lambda: self.open_connections == 0)

    async def serve(self, sock: socket.socket, number: int) -> None:
        """One connection, from its handshake to its end."""
        self.open_connections += 1
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=MAX_HEAD)
        protocol = asyncio.StreamReaderProtocol(reader)
        try:
            # A failed handshake, or a client that goes, is what many tests want.
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                transport, _ = await loop.connect_accepted_socket(lambda: protocol, sock, ssl=self.tls)
                writer = asyncio.StreamWriter(transport, protocol, reader, loop)
                with contextlib.closing(writer):
                    await self._talk(reader, writer, number)
        finally:
            async with self.changed:
                self.open_connections -= 1
                self.changed.notify_all()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        while True:
            request = await _read(reader, number)
            async with self.changed:
                self.requests.append(request)
                self.changed.notify_all()
            answer = self.answer(request) if callable(self.answer) else self.answer
            raw = await answer if inspect.isawaitable(answer) else answer
            if raw is None:
                await reader.read()
                return
            sent = b""
            async for piece in _pieces(raw):
                sent = (sent + piece)[:MAX_HEAD]
                writer.write(piece)
                await writer.drain()
            if not sent or b"\r\nconnection: close\r\n" in sent.lower():
                return


async def _read(reader: asyncio.StreamReader, number: int) -> ReceivedRequest:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return ReceivedRequest(method, path, headers, body, number)


async def _pieces(raw: bytes | AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if isinstance(raw, bytes):
        yield raw
        return
    async for piece in raw:
        yield piece


def server_context(leaf: trustme.LeafCert) -> ssl.SSLContext:
    """What an endpoint with this certificate speaks TLS with."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    leaf.configure_cert(context)
    return context


@contextlib.contextmanager
def authority_file(authority: trustme.CA) -> Iterator[str]:
    """The authority's certificate in a file, as `webhooks.ca_file` wants it."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "authority.pem")
        authority.cert_pem.write_to_path(str(path))
        yield str(path)


@contextlib.asynccontextmanager
async def running(
    *,
    host: str = PUBLIC,
    names: tuple[str, ...] = (NAME,),
    tls: bool | ssl.SSLContext = True,
    authority: trustme.CA | None = None,
    answer: Answer = OK,
    port: int = 0,
) -> AsyncIterator[WebhookServer]:
    """An endpoint for the time of the block. A certificate that it does not bring is for the names and the address."""
    authority = authority or trustme.CA()
    context = server_context(authority.issue_cert(*names, host)) if tls is True else tls or None
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with authority_file(authority) as ca_file, socket.create_server((host, port), family=family) as listening:
        listening.settimeout(0)
        server = WebhookServer(host, listening.getsockname()[1], names, context, ca_file, answer)
        tasks: set[asyncio.Task[None]] = set()
        accepting = asyncio.create_task(_accept(server, listening, tasks))
        try:
            yield server
        finally:
            accepting.cancel()
            # So that all have begun, and close their sockets.
            await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.wait({accepting, *tasks})


async def _accept(server: WebhookServer, listening: socket.socket, tasks: set[asyncio.Task[None]]) -> None:
    loop = asyncio.get_running_loop()
    for number in itertools.count(1):
        sock, _ = await loop.sock_accept(listening)
        server.connections += 1
        task = loop.create_task(server.serve(sock, number))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
