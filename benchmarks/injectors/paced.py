"""Sends single messages when their time has come, whatever became of those before: an open loop.

A sender keeps connections open, takes an idle one for each message and opens another when there is none, up to a limit;
then the message waits. So a slow server is asked over more connections at once, as it would be by real callers, and its
queue shows in the figures.
"""

import abc
import asyncio
import contextlib
import random
import select
import selectors
import time
import typing

from benchmarks import message

Result = typing.TypeVar("Result")
# Of one sender. Postfix has a process for each connection, and those beyond its limit would wait for its time-out.
MAX_CONNECTIONS = 100


class _Punctual(selectors.EpollSelector):
    """Wakes up when a timer is due; epoll alone waits for whole milliseconds, half of one too long on average."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout > 0:
            select.select([self.fileno()], [], [], timeout)
        return super().select(0)


def run(work: typing.Coroutine[typing.Any, typing.Any, Result]) -> Result:
    """`asyncio.run` on an event loop whose timers are exact to a tenth of a millisecond."""
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(_Punctual())) as runner:
        return runner.run(work)


class Sender(abc.ABC):
    """Connections to one server, and what is sent over them."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._places = asyncio.Semaphore(MAX_CONNECTIONS)

    async def send(self, serial: str) -> None:
        """One message to `customer-SERIAL@example.net`; returns when the server has taken responsibility for it."""
        async with self._places:
            while self._idle and self._idle[-1][0].at_eof():  # the server has closed what nobody used
                self._idle.pop()[1].close()
            connection = self._idle.pop() if self._idle else await self.connect()
            await self.exchange(*connection, serial)
            self._idle.append(connection)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A new connection that can be sent over."""
        return await asyncio.open_connection("127.0.0.1", self._port)

    @abc.abstractmethod
    async def exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, serial: str) -> None:
        """Send one message and read that it was accepted."""

    async def warm_up(self, connections: int) -> None:
        """Open connections before the clock runs."""
        self._idle += [await self.connect() for _ in range(connections)]

    def close(self) -> None:
        """End all connections."""
        for _, writer in self._idle:
            writer.close()


class HttpSender(Sender):
    """`POST /emails`."""

    def __init__(self, port: int, *, api_key: str) -> None:
        super().__init__(port)
        body = message.as_json("ascii")
        head = (
            f"POST /emails HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {api_key}\r\n"
            f"Content-Type: application/json\r\nIdempotency-Key: {message.SERIAL}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self._request = head.encode() + body

    async def exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, serial: str) -> None:
        """See Sender."""
        writer.write(self._request.replace(message.SERIAL.encode(), serial.encode()))
        answer = await reader.readuntil(b"\r\n\r\n")
        lengths = (line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        content = await reader.readexactly(int(next(lengths).partition(b":")[2]))
        if not answer.startswith(b"HTTP/1.1 202"):
            raise RuntimeError(f"a message was not accepted: {answer.decode()}{content.decode()}")


class SmtpSender(Sender):
    """MAIL, RCPT and DATA over a session that stays open."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self._content = message.as_mime("ascii").replace(b"\n", b"\r\n") + b".\r\n"

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """See Sender; the session is past EHLO."""
        reader, writer = await super().connect()
        await _reply(reader, b"220")
        writer.write(b"EHLO client.example.com\r\n")
        await _reply(reader, b"250")
        return reader, writer

    async def exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, serial: str) -> None:
        """See Sender."""
        recipient = f"customer-{serial}@{message.RECIPIENT_DOMAIN}"
        writer.write(f"MAIL FROM:<{message.SENDER}>\r\nRCPT TO:<{recipient}>\r\nDATA\r\n".encode())
        for expected in (b"250", b"250", b"354"):
            await _reply(reader, expected)
        writer.write(self._content)
        await _reply(reader, b"250")


async def _reply(reader: asyncio.StreamReader, expected: bytes) -> None:
    while (line := await reader.readline())[3:4] == b"-":
        pass
    if not line.startswith(expected):
        raise RuntimeError(f"expected {expected.decode()}, got {line.decode()}")


async def send_at_rate(sender: Sender, *, messages: int, rate: float, seed: int) -> dict[str, tuple[float, float]]:
    """Send so many at random moments, on average `rate` a second; when each was due and accepted, by its serial.

    The clock of a message runs from the moment when it was due, so a sender that lags flatters nobody.
    """
    chance = random.Random(seed)
    taken: dict[str, tuple[float, float]] = {}

    async def one(serial: str, due: float) -> None:
        # Who is asked for more than they can do may refuse connections: such a message does not arrive.
        with contextlib.suppress(OSError):
            await sender.send(serial)
            taken[serial] = (due, time.perf_counter())

    due = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(messages):
            due += chance.expovariate(rate)
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            group.create_task(one(f"{number:012}", due))
    return taken
