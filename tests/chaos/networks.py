"""An unreliable network between the service and PostgreSQL: it resets connections, loses, delays and refuses.

A TCP server on loopback passes octets to the Unix socket of the database server, and back. It reads as much of what
clients say as it needs for the worst moment: a COMMIT is on its way, and nobody will hear of it. Either the COMMIT is
lost, or the answer to it; the client cannot tell one from the other.

Everything that happens returns what it did, in figures for the report.
"""

import asyncio
import collections
import contextlib
import itertools
import random
import re
import socket
import struct
import urllib.parse
from collections.abc import AsyncIterator, Collection, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final

from postroad.storage.engine import queries
from tests.chaos import boundaries

CHUNK: Final = 64 * 1024
# On, and for no time: what is closed is reset.
LINGER: Final = struct.pack("ii", 1, 0)
SHARE: Final = 0.5
LOSING_SECONDS: Final = 3.0
HELD_SECONDS: Final = 3.0
# Longer than the service waits for a BEGIN and for the ROLLBACK after it.
HALF_OPEN_SECONDS: Final = 12.0
REFUSING_SECONDS: Final = 1.5
END_SECONDS: Final = 300.0


class Loss(StrEnum):
    """What became of a COMMIT."""

    COMMIT = "COMMIT lost"  # it never came to the server
    ANSWER = "answer lost"  # the transaction is committed


class Network:
    """All connections to one database server."""

    def __init__(self, server: Path, chance: random.Random) -> None:
        self.chance = chance
        self.kind_of = kinds_by_statement()
        # The next COMMIT of each kind of transaction, and how it is to be lost.
        self.aims: set[tuple[str, Loss]] = set()
        # A transaction may be of several kinds.
        self.losses: collections.Counter[tuple[str, Loss]] = collections.Counter()
        self.lost: collections.Counter[Loss] = collections.Counter()
        self.links: set[_Link] = set()
        self.is_held = False
        self._server = server
        self._is_refusing = False

    async def reset_some(self) -> Mapping[str, int]:
        """Some connections end at once, whatever they are about."""
        return {"connections reset": self._reset(self._some())}

    async def lose_commits(self) -> Mapping[str, int]:
        """Of each kind of transaction that comes meanwhile, one COMMIT is lost, and one answer to it."""
        before = self.lost.copy()
        self.aims.update(itertools.product(boundaries.KINDS, Loss))
        await asyncio.sleep(LOSING_SECONDS)
        self.aims.clear()
        return {
            "COMMITs lost on their way": self.lost[Loss.COMMIT] - before[Loss.COMMIT],
            "answers to COMMITs lost": self.lost[Loss.ANSWER] - before[Loss.ANSWER],
        }

    async def hold(self) -> Mapping[str, int]:
        """Nothing passes for a while, and then everything does."""
        self.is_held = True
        for link in self.links:
            link.flows.clear()
        await asyncio.sleep(self.chance.uniform(0, 2 * HELD_SECONDS))
        self.is_held = False
        for link in self.links:
            link.flows.set()
        return {"partitions of the network": 1}

    async def leave_half_open(self) -> Mapping[str, int]:
        """Some connections fall silent until their users give them up; new ones are well."""
        chosen = self._some()
        for link in chosen:
            link.flows.clear()
        await asyncio.sleep(HALF_OPEN_SECONDS)
        self._reset(chosen)
        return {"connections left half open": len(chosen)}

    async def refuse(self) -> Mapping[str, int]:
        """All connections are reset, and new ones as soon as they are made."""
        self._is_refusing = True
        self._reset(list(self.links))
        await asyncio.sleep(REFUSING_SECONDS)
        self._is_refusing = False
        return {"times without any connection": 1}

    def loss(self, kinds: Collection[str]) -> Loss | None:
        """Whether the COMMIT of a transaction of these kinds is lost, or the answer to it."""
        for loss in Loss:
            met = {(kind, loss) for kind in kinds}
            if met & self.aims:
                self.aims -= met
                self.losses.update(met)
                self.lost[loss] += 1
                return loss
        return None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client, from its beginning to its end."""
        if not self._is_refusing:
            with contextlib.suppress(OSError):  # the server is away, or either side has gone
                link = _Link(self, writer, *await asyncio.open_unix_connection(self._server))
                self.links.add(link)
                try:
                    await link.run(reader)
                finally:
                    self.links.discard(link)
        _reset(writer)

    def _some(self) -> list["_Link"]:
        return [link for link in self.links if self.chance.random() < SHARE]

    @staticmethod
    def _reset(links: Collection["_Link"]) -> int:
        for link in links:
            link.end()
        return len(links)


class _Link:
    """Two connections, to a client and to the server, as one."""

    def __init__(
        self,
        network: Network,
        client: asyncio.StreamWriter,
        answers: asyncio.StreamReader,
        server: asyncio.StreamWriter,
    ) -> None:
        self.flows = asyncio.Event()
        if not network.is_held:
            self.flows.set()
        self._network = network
        self._client = client
        self._answers = answers
        self._server = server
        self._heard = Heard(network.kind_of)
        self._loses_answer = False

    async def run(self, said: asyncio.StreamReader) -> None:
        """Pass octets until either side ends, or the network does it for them."""
        ways = [asyncio.create_task(self._pass_on(said)), asyncio.create_task(self._pass_back())]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.end()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    def end(self) -> None:
        """Reset both, and let go of what is held."""
        for writer in (self._client, self._server):
            _reset(writer)
        self.flows.set()

    async def _pass_on(self, said: asyncio.StreamReader) -> None:
        while octets := await said.read(CHUNK):
            await self.flows.wait()
            if self._server.is_closing():
                return
            # A client waits for the answer before a COMMIT, so nothing else comes with it.
            kinds = self._heard.committed(octets)
            loss = self._network.loss(kinds)
            if loss is Loss.COMMIT:
                return
            self._loses_answer = loss is Loss.ANSWER
            self._server.write(octets)
            await self._server.drain()

    async def _pass_back(self) -> None:
        while octets := await self._answers.read(CHUNK):
            await self.flows.wait()
            if self._loses_answer or self._client.is_closing():  # what is lost says that it is committed
                return
            self._client.write(octets)
            await self._client.drain()


class Heard:
    """What a client says, as far as it tells which kinds of transactions it commits.

    PostgreSQL documentation, 54.7 "Message Formats": a type, a length that counts itself, and what the type says. Only
    the first message of a connection has no type.
    """

    def __init__(self, kind_of: Mapping[str, str]) -> None:
        self._kind_of = kind_of
        self._rest = b""
        self._type_length = 0
        self._kinds: set[str] = set()
        self._statements: dict[bytes, set[str]] = {}

    def committed(self, octets: bytes) -> set[str]:
        """The kinds of the transaction, if it is about to be committed by these octets."""
        self._rest += octets
        found: set[str] = set()
        while len(self._rest) >= self._type_length + 4:
            begin = self._type_length + 4
            end = self._type_length + int.from_bytes(self._rest[self._type_length : begin])
            if len(self._rest) < end:
                break
            found |= self._hear(self._rest[: self._type_length], self._rest[begin:end])
            self._rest = self._rest[end:]
            self._type_length = 1
        return found

    def _hear(self, message: bytes, content: bytes) -> set[str]:
        if message == b"P":
            name, query, _ = content.split(b"\0", 2)
            # Changes that are sent together are parts of one statement, with other numbers of their arguments.
            said = _unnumbered(query.decode())
            self._statements[name] = {kind for text, kind in self._kind_of.items() if _unnumbered(text) in said}
        elif message == b"B":
            _, name, _ = content.split(b"\0", 2)
            self._kinds |= self._statements.get(name, set())
        elif message == b"Q" and content.startswith(b"BEGIN"):
            self._kinds = set()
        return self._kinds if (message, content) == (b"Q", b"COMMIT\0") else set()


def _unnumbered(statement: str) -> str:
    return re.sub(r"\$\d+", "$", statement).rstrip(";")


def kinds_by_statement() -> dict[str, str]:
    """The kinds of transactions, by what is said to the server in them and in no others."""
    written = queries.load("postgres")
    return {written[kind.query]: name for name, kind in boundaries.KINDS.items()}


def _reset(writer: asyncio.StreamWriter) -> None:
    """End a connection as a network does: without a word."""
    end = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):  # it has ended already
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)
    writer.transport.abort()


@contextlib.asynccontextmanager
async def between(url: str, chance: random.Random) -> AsyncIterator[tuple[Network, str]]:
    """A network before a server that listens on a Unix socket, and the address of the same database behind it."""
    parts = urllib.parse.urlsplit(url)
    (folder,) = urllib.parse.parse_qs(parts.query)["host"]
    network = Network(Path(folder) / ".s.PGSQL.5432", chance)
    listening = await asyncio.start_server(network.serve, "127.0.0.1", 0)
    try:
        port = listening.sockets[0].getsockname()[1]
        yield network, f"postgresql://postgres@127.0.0.1:{port}{parts.path}?sslmode=disable"
    finally:
        listening.close()
        for link in list(network.links):
            link.end()
        async with asyncio.timeout(END_SECONDS):
            while network.links:  # each ends by itself
                await asyncio.sleep(0)
        await listening.wait_closed()
