"""A listener with a policy that keeps what it gets, and SMTP by hand for clients that no honest library would be."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from postroad.network.smtp import smtp_server
from postroad.protocol.smtp import server_events, values

# Long enough for a loaded machine; a test that waits this long has failed.
TIMEOUT_SECONDS = 300
FEATURES = server_events.Features("mx.example.test", 1_000_000)
ACCEPTED = values.Reply(250, "taken", "2.0.0")
TRANSACTION = b"EHLO x\r\nMAIL FROM:<a@example.org>\r\nRCPT TO:<b@example.net>\r\nDATA\r\n"

Take = Callable[[values.MailTransaction], smtp_server.PolicyDecision]


@dataclass(slots=True)
class Recorded:
    """What the policies of a listener were given, and what went wrong."""

    messages: list[values.MailTransaction] = field(default_factory=list)
    sessions: list[server_events.Session] = field(default_factory=list)
    problems: list[Exception] = field(default_factory=list)


class RecordingPolicy(smtp_server.SessionPolicy):
    """Takes everything, after `take` has had its say; the password is "secret"."""

    def __init__(self, kept: Recorded, take: Take | None) -> None:
        self._kept = kept
        self._take = take

    async def authenticate(self, username: str, password: str) -> smtp_server.ReplyOrClose:
        await asyncio.sleep(0)
        if (username, password) == ("jo", "secret"):
            return values.Reply(235, "welcome", "2.7.0")
        return await _later(super().authenticate(username, password))

    def message(self, transaction: values.MailTransaction) -> smtp_server.PolicyDecision:
        self._kept.messages.append(transaction)
        return ACCEPTED if self._take is None else self._take(transaction)


async def _later(verdict: smtp_server.PolicyDecision) -> smtp_server.ReplyOrClose:
    return await verdict if isinstance(verdict, Awaitable) else verdict


@dataclass(slots=True)
class Gate:
    """A `take` that waits until it is opened."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    opened: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, _envelope: values.MailTransaction) -> smtp_server.ReplyOrClose:
        self.reached.set()
        await self.opened.wait()
        return ACCEPTED


@dataclass(slots=True)
class RunningListener:
    """A listener that was started."""

    listener: smtp_server.SmtpListener
    kept: Recorded

    @property
    def address(self) -> tuple[str, int]:
        return self.listener.address


@contextlib.asynccontextmanager
async def running(
    features: server_events.Features = FEATURES,
    *,
    take: Take | None = None,
    make_policy: Callable[[server_events.Session], smtp_server.SessionPolicy] | None = None,
    **options: Any,
) -> AsyncIterator[RunningListener]:
    """A listener for the length of a block."""
    kept = Recorded()

    def keep(session: server_events.Session) -> smtp_server.SessionPolicy:
        kept.sessions.append(session)
        return RecordingPolicy(kept, take)

    listener = smtp_server.SmtpListener(
        make_policy or keep, features=features, failed=kept.problems.append, sweep_seconds=0.02, **options
    )
    await listener.start("127.0.0.1", 0)
    try:
        yield RunningListener(listener, kept)
    finally:
        await listener.stop(grace_seconds=0)


class Connection:
    """One connection to a server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            self.writer.write(data)
            await self.writer.drain()

    async def reply(self) -> bytes:
        """The last line of the next reply."""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            line = await self.reader.readuntil(b"\r\n")
            while line[3:4] == b"-":
                line = await self.reader.readuntil(b"\r\n")
            return line.rstrip(b"\r\n")

    async def ask(self, data: bytes, *, replies: int = 1) -> list[bytes]:
        """The replies to these bytes."""
        await self.send(data)
        return [await self.reply() for _ in range(replies)]

    async def rest(self) -> bytes:
        """Everything until the server closes the connection."""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            with contextlib.suppress(ConnectionError):
                return await self.reader.read()
            return b""


@contextlib.asynccontextmanager
async def connect(
    address: tuple[str, int], *, tls: ssl.SSLContext | None = None, local: str | None = None
) -> AsyncIterator[Connection]:
    """A new connection before its banner, closed at the end."""
    source = None if local is None else (local, 0)
    reader, writer = await asyncio.open_connection(*address, ssl=tls, local_addr=source)
    try:
        yield Connection(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()
