"""A webhook server as a separate program: HTTPS/1.1 with persistent connections, as quick as Python lets it be.

    python -m benchmarks.peers.webhook_server FOLDER ENDPOINTS

The URL decides: `/a3` is the third endpoint (from zero) and is answered with 200; `/h3` is read, counted and never
answered. Counts stand in a file that others map into their memory, so that a look costs nobody anything. Signatures are
not verified while the clock runs: some requests are kept, and written to a file at the end. It also is the name
server of its own names: every name leads to it.
"""

import asyncio
import contextlib
import mmap
import pathlib
import signal
import ssl
import sys
import time
import typing

import dns.message
import dns.rdatatype
import dns.rrset
import httptools
import msgspec
import uvloop

ADDRESS = "127.0.0.2"
CERTIFICATE, COUNTS, SAMPLES = "server.pem", "counts", "samples.json"
# The counts file is numbers of eight bytes: these three, then a count for each endpoint.
PORT, NAME_PORT, CONNECTIONS, FIRST_ENDPOINT = 0, 1, 2, 3
NUMBER_BYTES = 8
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"
ANSWERED = ord("a")
SIGNATURE = b"service-signature"
# Of each endpoint the first request and then every hundredth: signatures from the whole of a run.
SAMPLE_EVERY = 100
NAME_SECONDS = 300


class Sample(msgspec.Struct, frozen=True):
    """A request that was kept; `at` is when it came, in seconds."""

    endpoint: int
    signature: str
    body: bytes
    at: int


class WebhookProtocol(asyncio.Protocol):
    """One connection. It counts, answers, and now and then keeps a request."""

    def __init__(self, counts: memoryview, samples: list[Sample]) -> None:
        self._counts = counts
        self._samples = samples
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._url = self._signature = b""
        self._body: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The handshake is done."""
        self._transport = typing.cast("asyncio.Transport", transport)
        self._counts[CONNECTIONS] += 1

    def data_received(self, data: bytes) -> None:
        """Bytes of requests."""
        self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        """A request begins."""
        self._url = self._signature = b""
        self._body = []

    def on_url(self, url: bytes) -> None:
        """Its target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """One of its fields."""
        if name.lower() == SIGNATURE:
            self._signature = value

    def on_body(self, body: bytes) -> None:
        """A part of its body."""
        self._body.append(body)

    def on_message_complete(self) -> None:
        """All of it is there."""
        endpoint = int(self._url[2:])
        if self._counts[FIRST_ENDPOINT + endpoint] % SAMPLE_EVERY == 0:
            body, at = b"".join(self._body), int(time.time())
            self._samples.append(Sample(endpoint, self._signature.decode(), body, at))
        self._counts[FIRST_ENDPOINT + endpoint] += 1
        if self._url[1] == ANSWERED and self._transport is not None:
            self._transport.write(ANSWER)


class Names(asyncio.DatagramProtocol):
    """The name server: every name has the address of this server."""

    def __init__(self) -> None:
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It may speak."""
        self._transport = typing.cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """A question."""
        query = dns.message.from_wire(data)
        response = dns.message.make_response(query, recursion_available=True)
        question = query.question[0]
        if question.rdtype == dns.rdatatype.A:
            response.answer.append(dns.rrset.from_text(question.name, NAME_SECONDS, "IN", "A", ADDRESS))
        else:
            start = f"ns.example. root.example. 1 3600 3600 3600 {NAME_SECONDS}"
            response.authority.append(dns.rrset.from_text(".", NAME_SECONDS, "IN", "SOA", start))
        assert self._transport is not None
        self._transport.sendto(response.to_wire(), addr)


async def serve(folder: pathlib.Path, *, counts: memoryview, samples: list[Sample]) -> None:
    """Receive until SIGTERM."""
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / CERTIFICATE)
    names, _ = await loop.create_datagram_endpoint(Names, local_addr=(ADDRESS, 0))
    server = await loop.create_server(lambda: WebhookProtocol(counts, samples), ADDRESS, 0, ssl=context)
    counts[NAME_PORT] = names.get_extra_info("sockname")[1]
    # The last thing: who sees the port may come.
    counts[PORT] = server.sockets[0].getsockname()[1]
    with contextlib.closing(names), contextlib.closing(server):
        await stopping.wait()


def main() -> None:
    """Receive, then write down what was kept."""
    folder, endpoints = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    samples: list[Sample] = []
    path = folder / COUNTS
    path.write_bytes(bytes(NUMBER_BYTES * (FIRST_ENDPOINT + endpoints)))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as shared, memoryview(shared).cast("Q") as counts:
        uvloop.run(serve(folder, counts=counts, samples=samples))
        (folder / SAMPLES).write_bytes(msgspec.json.encode(samples))


if __name__ == "__main__":
    main()
