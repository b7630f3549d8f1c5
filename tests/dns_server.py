"""A name server on loopback, UDP and TCP on one port, that answers as a test tells it to, also falsely or brokenly.

Zones are a dictionary: `{"example.org": {"MX": ["10 mx.example.org."], "A": ["192.0.2.1"]}}`. A name that is not there
does not exist (NXDOMAIN), unless there is an entry `*`. A `Fault` may stand for all of a name or for one type. Aliases
(CNAME) are followed inside the zones, as a recursive server would. Beside its types a name may have `"TC": []`, whose
answers only fit into TCP, or `"FORGED": []`, before whose answers comes one with another id that says SERVFAIL. The
zones may be changed while it runs.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, cast

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.rrset

LOOPBACK: Final = "127.0.0.1"
# A free TCP port may be taken for UDP; that it is so this many times in a row means something else is wrong.
PORT_TRIES: Final = 20
MAX_ALIASES: Final = 20


class Fault(StrEnum):
    """What a server may do instead of answering."""

    SERVFAIL = "SERVFAIL"
    REFUSED = "REFUSED"
    SILENCE = "silence"
    WRONG_ID = "the answer to another question"
    GARBAGE = "bytes that are no message"


Types = Mapping[str, Sequence[str] | Fault]
Zones = dict[str, Types | Fault]


class DnsServer:
    """The server; `secure` names the domains that are signed, each with what is below it (the AD flag)."""

    def __init__(self, zones: Zones, *, secure: Collection[str] = (), ttl: int = 300) -> None:
        self.zones = zones
        self.secure = set(secure)
        self.ttl = ttl
        self.ttls: dict[str, int] = {}  # for single names
        self.negative_ttl = min(ttl, 60)
        self.port = 0
        self.questions: list[tuple[str, str]] = []  # names and types, in the order in which they came
        self.transports: list[str] = []
        self.asked_for_authenticity: list[bool] = []
        self.held = asyncio.Event()
        self.held.set()

    @property
    def address(self) -> str:
        """As `delivery.resolvers` wants it."""
        return f"{LOOPBACK}:{self.port}"

    def count(self, name: str, kind: str) -> int:
        """How often something was asked."""
        return self.questions.count((name, kind))

    @contextlib.contextmanager
    def holding(self) -> Iterator[None]:
        """Answers wait until the end of the block; over TCP and UDP."""
        self.held.clear()
        try:
            yield
        finally:
            self.held.set()

    async def answer(self, wire: bytes, transport: str) -> list[bytes]:
        """What goes back for a question: packets, often one."""
        try:
            query = dns.message.from_wire(wire)
        except dns.exception.DNSException:
            return []
        question = query.question[0]
        name = question.name.to_text(omit_final_dot=True).lower()
        kind = dns.rdatatype.to_text(question.rdtype)
        self.questions.append((name, kind))
        self.transports.append(transport)
        self.asked_for_authenticity.append(bool(query.flags & dns.flags.AD))
        await self.held.wait()
        return self._packets(query, name, kind, transport)

    def _packets(self, query: dns.message.Message, name: str, kind: str, transport: str) -> list[bytes]:
        response = dns.message.make_response(query, recursion_available=True)
        types = self.zones.get(name, self.zones.get("*"))
        fault = types if isinstance(types, Fault) else (types or {}).get(kind)
        match fault:
            case Fault.SILENCE:
                return []
            case Fault.GARBAGE:
                return [b"not a message of DNS"]
            case Fault.SERVFAIL | Fault.REFUSED:
                response.set_rcode(dns.rcode.from_text(fault.value))
                return [response.to_wire()]
            case Fault.WRONG_ID:
                response.id ^= 1
                self._add(response, name, kind)
                return [response.to_wire()]
        if isinstance(types, Mapping) and "TC" in types and transport == "udp":
            response.flags |= dns.flags.TC
            return [response.to_wire()]
        forged = dns.message.make_response(query)
        forged.id ^= 1
        forged.set_rcode(dns.rcode.SERVFAIL)
        self._add(response, name, kind)
        before = [forged.to_wire()] if isinstance(types, Mapping) and "FORGED" in types else []
        return [*before, response.to_wire(max_size=65_535)]

    def _add(self, response: dns.message.Message, name: str, kind: str) -> None:
        """The records, behind as many aliases as there are."""
        is_secure = True
        for _ in range(MAX_ALIASES):
            is_secure = is_secure and self._is_secure(name)
            types = self.zones.get(name, self.zones.get("*"))
            if not isinstance(types, Mapping):
                response.set_rcode(dns.rcode.NXDOMAIN if types is None else dns.rcode.SERVFAIL)
                break
            alias = types.get("CNAME")
            found = types.get(kind) if alias is None else alias
            if found is not None and not isinstance(found, Fault):
                ttl = self.ttls.get(name, self.ttl)
                sort = kind if alias is None else "CNAME"
                # One by one: a set would be shuffled.
                response.answer.extend(dns.rrset.from_text(f"{name}.", ttl, "IN", sort, record) for record in found)
            if alias is None or isinstance(alias, Fault) or kind == "CNAME":
                break
            name = alias[0].rstrip(".").lower()
        if not response.answer:
            start = f"ns.example. root.example. 1 3600 3600 3600 {self.negative_ttl}"
            response.authority.append(dns.rrset.from_text(".", 86_400, "IN", "SOA", start))
        if is_secure:
            response.flags |= dns.flags.AD

    def _is_secure(self, name: str) -> bool:
        return any(name == domain or name.endswith(f".{domain}") for domain in self.secure)


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, server: DnsServer, tasks: set[asyncio.Task[None]]) -> None:
        self._server = server
        self._tasks = tasks
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        task = asyncio.get_running_loop().create_task(self._answer(data, addr))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, data: bytes, addr: tuple[str, int]) -> None:
        for packet in await self._server.answer(data, "udp"):
            if self._transport is not None and not self._transport.is_closing():
                self._transport.sendto(packet, addr)


async def _serve_stream(
    server: DnsServer, tasks: set[asyncio.Task[None]], streams: tuple[asyncio.StreamReader, asyncio.StreamWriter]
) -> None:
    reader, writer = streams
    task = asyncio.current_task()
    assert task is not None
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    with (
        contextlib.closing(writer.transport),
        contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError),
    ):
        while True:
            length = int.from_bytes(await reader.readexactly(2), "big")
            for packet in await server.answer(await reader.readexactly(length), "tcp"):
                writer.write(len(packet).to_bytes(2, "big") + packet)
            await writer.drain()


@contextlib.asynccontextmanager
async def running(
    zones: Zones, *, secure: Collection[str] = (), ttl: int = 300, port: int = 0
) -> AsyncIterator[DnsServer]:
    """A server for the time of the block, on a free port if none is named."""
    server = DnsServer(zones, secure=secure, ttl=ttl)
    tasks: set[asyncio.Task[None]] = set()
    stream, datagrams = await _bind(server, tasks, port)
    try:
        yield server
    finally:
        server.held.set()
        datagrams.close()
        stream.close()
        for task in list(tasks):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await stream.wait_closed()


async def _bind(
    server: DnsServer, tasks: set[asyncio.Task[None]], port: int
) -> tuple[asyncio.Server, asyncio.DatagramTransport]:
    loop = asyncio.get_running_loop()
    for _ in range(PORT_TRIES):
        stream = await asyncio.start_server(lambda *streams: _serve_stream(server, tasks, streams), LOOPBACK, port)
        bound = stream.sockets[0].getsockname()[1]
        try:
            transport, _ = await loop.create_datagram_endpoint(
                lambda: _Datagrams(server, tasks), local_addr=(LOOPBACK, bound)
            )
        except OSError:
            stream.close()
            continue
        server.port = bound
        return stream, transport
    raise RuntimeError("no port is free for both UDP and TCP")
