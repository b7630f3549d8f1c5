"""A mail host that remembers what it took, and holds sessions where a test wants them.

    async with sinks.running() as sink:
        sink.hold(sinks.Point.CONTENT)
        ...
        await sink.waiting(sinks.Point.CONTENT)
        sink.release(sinks.Point.CONTENT)

A message counts as taken when its final dot has come and the answer is 250, after that was sent: whether or not the
sender lives to read it. `taken` holds one entry for each recipient of it, in order.
"""

import asyncio
import collections
import contextlib
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

TIMEOUT_SECONDS = 600.0
# Longer than any line of a message.
LINE_BYTES = 64 * 1024
# Less than a large message has, so that its sender has to wait for a sink that does not read.
SMALL_BUFFER_BYTES = 4096
ACCEPTED = "250 2.0.0 taken"
_ADDRESS = re.compile(r"<([^>]*)>")
_MESSAGE_ID = re.compile(rb"^Message-ID: *(\S+)", re.IGNORECASE | re.MULTILINE)


class Point(Enum):
    """Where a session can be held."""

    BANNER = auto()  # connected, and not greeted
    DATA = auto()  # asked for DATA, and not answered
    RECEIVING = auto()  # answered with 354, and nothing read of the content
    CONTENT = auto()  # the final dot has come, and is not answered
    ACCEPTED = auto()  # answered with 250
    QUIT = auto()  # the sender takes leave


class Copy(NamedTuple):
    """One recipient of one message that was taken."""

    recipient: str
    message_id: str


@dataclass
class Sink:
    """The host. `answer` gives the reply to a final dot, for a message's recipients; an empty one is not given."""

    host: str
    port: int = 0
    taken: list[Copy] = field(default_factory=list)
    connections: int = 0
    answer: Callable[[Sequence[str]], str] = lambda _recipients: ACCEPTED
    # Called when a final dot has come, before anything else.
    before_answer: Callable[[], None] = lambda: None
    seen: collections.Counter[Point] = field(default_factory=collections.Counter)
    _waiting: collections.Counter[Point] = field(default_factory=collections.Counter)
    _gates: dict[Point, asyncio.Event] = field(default_factory=dict)
    _moved: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def recipients(self) -> list[str]:
        """Who got a copy, in order; whoever got two is named twice."""
        return [copy.recipient for copy in self.taken]

    def hold(self, point: Point) -> None:
        """From now on sessions wait here."""
        self._gates[point] = asyncio.Event()

    def release(self, point: Point) -> None:
        """Let them all go on, and those that come later too."""
        self.let_others_pass(point).set()

    def let_others_pass(self, point: Point) -> asyncio.Event:
        """Hold nobody any more but those that wait here; they go on when the event is set."""
        return self._gates.pop(point)

    async def waiting(self, point: Point, count: int = 1) -> None:
        """Until so many sessions wait here."""
        await self._until(lambda: self._waiting[point] >= count)

    async def passed(self, point: Point, count: int = 1) -> None:
        """Until so many sessions have come by here."""
        await self._until(lambda: self.seen[point] >= count)

    async def got(self, count: int) -> None:
        """Until so many copies were taken."""
        await self._until(lambda: len(self.taken) >= count)

    async def _until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(TIMEOUT_SECONDS), self._moved:
            await self._moved.wait_for(is_so)

    async def reach(self, point: Point) -> None:
        """A session comes by."""
        async with self._moved:
            self.seen[point] += 1
            self._waiting[point] += 1
            self._moved.notify_all()
        if gate := self._gates.get(point):
            await gate.wait()
        self._waiting[point] -= 1

    async def keep(self, recipients: Sequence[str], content: bytes) -> None:
        """A message was taken."""
        found = _MESSAGE_ID.search(content)
        assert found is not None
        async with self._moved:
            self.taken += [Copy(recipient, found[1].decode()) for recipient in recipients]
            self._moved.notify_all()


async def _converse(sink: Sink, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    def say(line: str) -> None:
        writer.write(line.encode() + b"\r\n")

    recipients: list[str] = []
    await sink.reach(Point.BANNER)
    say("220 sink.example ESMTP")
    while line := (await reader.readline()).decode().rstrip():
        verb = line[:4].upper()
        if verb == "EHLO":
            say("250-sink.example\r\n250-PIPELINING\r\n250 SIZE 20000000")
        elif verb == "RCPT":
            recipients.append(_ADDRESS.findall(line)[0])
            say("250 2.1.5 ok")
        elif verb == "DATA":
            await sink.reach(Point.DATA)
            say("354 go on")
            await _take(sink, reader, writer, recipients)
            recipients = []
        elif verb == "QUIT":
            await sink.reach(Point.QUIT)
            say("221 2.0.0 bye")
            return
        else:
            say("250 2.0.0 ok")


async def _take(
    sink: Sink, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, recipients: Sequence[str]
) -> None:
    await sink.reach(Point.RECEIVING)
    content = bytearray()
    while (line := await reader.readline()) != b".\r\n":
        if not line.endswith(b"\n"):
            raise EOFError
        content += line
    sink.before_answer()
    await sink.reach(Point.CONTENT)
    answer = sink.answer(recipients)
    if not answer:
        await reader.read()
        raise EOFError
    try:
        writer.write(answer.encode() + b"\r\n")
        await writer.drain()
    finally:
        if answer == ACCEPTED:
            await sink.keep(recipients, bytes(content))
            await sink.reach(Point.ACCEPTED)


@contextlib.asynccontextmanager
async def running(host: str = "127.0.0.1", *, port: int = 0, small_buffers: bool = False) -> AsyncIterator[Sink]:
    """A sink for the time of the block."""
    sink = Sink(host)

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sink.connections += 1
        await _converse(sink, reader, writer)

    async with listening(converse, host, port) as bound:
        if small_buffers:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER_BYTES)
        sink.port = bound.getsockname()[1]
        yield sink


@contextlib.asynccontextmanager
async def listening(
    converse: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]], host: str, port: int = 0
) -> AsyncIterator[socket.socket]:
    """A host that talks to everybody who connects, until the block ends; a session ends as its peer likes."""
    sessions: set[asyncio.Task[None]] = set()

    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        sessions.add(task)
        try:
            await converse(reader, writer)
        except (OSError, EOFError, asyncio.CancelledError):
            pass
        finally:
            sessions.discard(task)
            writer.transport.abort()

    server = await asyncio.start_server(session, host, port, limit=LINE_BYTES, backlog=1000)
    try:
        yield server.sockets[0]
    finally:
        server.close()
        for task in list(sessions):
            task.cancel()
        await asyncio.gather(*sessions, return_exceptions=True)
        await asyncio.sleep(0)  # lets the loop close the aborted transports
