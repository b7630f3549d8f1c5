"""The SMTP listener of `postroad serve` in a process of its own, and clients that record the replies they got.

Some clients put a key into their mail and repeat it until somebody answers, each time with a new Date and Message-ID,
as a program does that renders its mail again. Others have no key and never repeat. `prove` then holds the store against
what all of them know: what was answered with 250 is there once, and what nobody answered is there once or not at all.
"""

import asyncio
import base64
import contextlib
import itertools
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from postroad import context
from postroad.protocol.mime import builder
from postroad.services.accounts import account_registry as accounts
from postroad.services.accounts import credits
from postroad.services.domains import domain_registry as domains
from postroad.services.operations import operator_jobs
from postroad.services.people import credentials
from tests.reliability import delivery_harness, service_process
from tests.reliability.service_process import (
    CREDITS,
    DOMAIN,
    POLL_SECONDS,
    RECIPIENTS,
    TIMEOUT_SECONDS,
    UNIQUE_RECIPIENTS,
)

SENDER = f"shop@{DOMAIN}"
QUEUED = "2.0.0 OK: queued as "
ACCEPTED, STOPPING, REFUSED_FROM = 250, 421, 400
FIRST_PERMANENT = 500
DATE = 1_800_000_000
HELLO = b"EHLO client.example.org\r\n"
ENVELOPE = b"".join(
    (f"MAIL FROM:<{SENDER}>\r\n".encode(), *(b"RCPT TO:<%s>\r\n" % to.encode() for to in RECIPIENTS), b"DATA\r\n")
)


class SubmissionService(service_process.Service):
    """A process with the role submission, and maybe others; `smtp` is where it listens while it lives."""

    smtp: tuple[str, int] | None = None

    async def start(
        self,
        *before: str,
        log: IO[bytes] | None = None,
        pass_fds: Sequence[int] = (),
        variables: Mapping[str, str] | None = None,
    ) -> None:
        await super().start(*before, log=log, pass_fds=pass_fds, variables=variables)
        host, _, port = delivery_harness.events(self, "started")[0]["submission"].rpartition(":")
        self.smtp = host, int(port)

    async def kill(self) -> None:
        self.smtp = None
        await super().kill()

    async def is_stopping(self) -> bool:
        return bool(delivery_harness.events(self, "stopping"))


@contextlib.asynccontextmanager
async def running(
    folder: Path,
    url: str,
    *,
    roles: tuple[str, ...] = ("submission",),
    grace_seconds: int = 20,
    limits: Mapping[str, int] | None = None,
) -> AsyncIterator[SubmissionService]:
    """A running service; it will have ended when the block does."""
    await asyncio.to_thread(folder.mkdir, exist_ok=True)
    tables = {
        "submission": {"listen": "127.0.0.1:0", "auth_without_tls": True},
        "shutdown": {"grace_seconds": grace_seconds},
    }
    service = SubmissionService(folder, url, roles=roles, sections=delivery_harness.as_toml(tables), limits=limits)
    async with service_process.ending(service):
        await service.start()
        yield service


@dataclass(frozen=True, slots=True)
class Reply:
    """A code, and the text of the last line."""

    code: int
    text: str

    @property
    def is_temporary(self) -> bool:
        return REFUSED_FROM <= self.code < FIRST_PERMANENT

    @property
    def message_id(self) -> str:
        assert (self.code, self.text[: len(QUEUED)]) == (ACCEPTED, QUEUED), self
        return self.text.removeprefix(QUEUED)


class Session:
    """A connection. One that is lost raises OSError or EOFError."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.greeting = Reply(0, "")
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, address: tuple[str, int] | None) -> "Session":
        if address is None:
            raise ConnectionRefusedError
        session = cls(*await asyncio.open_connection(*address))
        try:
            session.greeting = await session.reply()
            assert session.greeting.code in {220, STOPPING}
        except BaseException:
            session.close()
            raise
        return session

    def close(self) -> None:
        self._writer.transport.abort()

    def write(self, octets: bytes) -> None:
        self._writer.write(octets)

    async def reply(self) -> Reply:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while (line := await self._reader.readuntil(b"\r\n"))[3:4] == b"-":
                pass
        return Reply(int(line[:3]), line[4:].decode().rstrip())

    async def say(self, octets: bytes) -> Reply:
        self.write(octets)
        return await self.reply()

    async def log_in(self, login: tuple[str, str]) -> Reply:
        """The first refusal, or what became of AUTH: who is told to go says nothing more."""
        if self.greeting.code == STOPPING:
            return self.greeting
        reply = await self.say(HELLO)
        if reply.code != ACCEPTED:
            return reply
        return await self.say(b"AUTH PLAIN " + base64.b64encode("\0".join(("", *login)).encode()) + b"\r\n")

    async def begin(self) -> Reply:
        """The envelope in one go; the first refusal, or 354."""
        self.write(ENVELOPE)
        for _ in range(len(RECIPIENTS) + 1):
            reply = await self.reply()
            if reply.code != ACCEPTED:
                return reply
        return await self.reply()

    async def send(self, content: bytes) -> Reply:
        """A whole message, and what became of it."""
        reply = await self.begin()
        return await self.say(content) if reply.code == 354 else reply

    async def is_over(self) -> bool:
        """Whether nothing more comes."""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return await self._reader.read() == b""


def content(subject: str, *, key: str | None = None, attempt: int = 0, text: str = "Hello") -> bytes:
    """A message as a client writes it, with the dot that ends it."""
    fields = [
        f"From: Shop <{SENDER}>",
        f"To: {RECIPIENTS[0]}",
        f"Subject: {subject}",
        f"Date: {builder.format_date(DATE + attempt)}",
        f"Message-ID: <{attempt}.{subject}@client.example.org>",
        *([] if key is None else [f"Idempotency-Key: {key}"]),
    ]
    return "\r\n".join((*fields, "", text, ".", "")).encode()


class Client:
    """Somebody with a connection, who opens another one when it is lost."""

    def __init__(self, senders: "Senders") -> None:
        self._senders = senders
        self._session: Session | None = None

    async def attempt(self, octets: bytes) -> Reply | None:
        """Hand a message in once; None when nobody answered."""
        try:
            reply = await self._attempt(octets)
        except (OSError, EOFError):
            reply = None
        if reply is None or reply.code == STOPPING:
            self.close()
        return reply

    async def _attempt(self, octets: bytes) -> Reply:
        if self._session is None:
            self._session = await Session.open(self._senders.service.smtp)
            reply = await self._session.log_in(self._senders.login)
            if reply.code >= REFUSED_FROM:
                self.close()
                return reply
        return await self._session.send(octets)

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
        self._session = None


@dataclass(slots=True)
class Senders:
    """Everyone who sends through a service, and what they know, by the subject of each message."""

    service: SubmissionService
    account_id: str
    login: tuple[str, str]
    accepted: dict[str, str] = field(default_factory=dict)
    unanswered: set[str] = field(default_factory=set)
    refusals: list[Reply] = field(default_factory=list)
    _clients: list[Client] = field(default_factory=list)
    _attempts: Iterator[int] = field(default_factory=itertools.count)

    def client(self) -> Client:
        self._clients.append(Client(self))
        return self._clients[-1]

    def close(self) -> None:
        for client in self._clients:
            client.close()

    @contextlib.asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        """A session that has logged in."""
        session = await Session.open(self.service.smtp)
        try:
            assert (await session.log_in(self.login)).code == 235
            yield session
        finally:
            session.close()

    async def once(self, client: Client, subject: str) -> None:
        """Hand in a message without a key, once."""
        reply = await client.attempt(content(subject))
        if reply is None:
            self.unanswered.add(subject)
            await asyncio.sleep(POLL_SECONDS)
        else:
            self._note(subject, reply)

    async def send_until_answered(self, client: Client, subject: str) -> str:
        """Repeat a message with its key until it is taken; its id, which never changes."""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while True:
                octets = content(subject, key=subject, attempt=next(self._attempts))
                reply = await client.attempt(octets)
                if reply is not None:
                    self._note(subject, reply)
                    if reply.code == ACCEPTED:
                        return self.accepted[subject]
                await asyncio.sleep(POLL_SECONDS)

    def _note(self, subject: str, reply: Reply) -> None:
        """250 takes the message, with the same id each time; everything else is a temporary refusal."""
        if reply.code == ACCEPTED:
            assert self.accepted.setdefault(subject, reply.message_id) == reply.message_id, "accepted twice"
        else:
            assert reply.is_temporary, reply
            self.refusals.append(reply)

    async def prove(self) -> None:
        """What was taken is there once, what nobody answered once at the most, and every credit is in its place."""
        async with service_process.inside(self.service.url) as ctx:
            stored = await service_process.stored_messages(ctx, self.account_id)
            found = await accounts.find(ctx, self.account_id)
            report = await operator_jobs.check_consistency(ctx)
        by_subject = dict(stored)
        assert len(by_subject) == len(stored)
        assert {subject: by_subject.get(subject) for subject in self.accepted} == self.accepted
        assert by_subject.keys() - self.accepted.keys() <= self.unanswered
        used = len(stored) * UNIQUE_RECIPIENTS
        assert (found.available, found.reserved) == (CREDITS - used, used)
        assert report.findings == []


@contextlib.asynccontextmanager
async def sending(service: SubmissionService) -> AsyncIterator[Senders]:
    """Clients of a running service, with a new account."""
    async with service_process.inside(service.url) as ctx:
        senders = Senders(service, *await open_account(ctx))
    try:
        yield senders
    finally:
        senders.close()
        await asyncio.sleep(0)  # lets the loop close the aborted transports


async def open_account(ctx: context.Context) -> tuple[str, tuple[str, str]]:
    """An account that may send: its id, and the username and password of a credential."""
    account = await accounts.create(ctx, "Shop")
    await domains.add(ctx, account.id, DOMAIN, verified=True)
    await credits.add(ctx, account.id, CREDITS, None)
    credential, password = await credentials.create(ctx, account.id, "default")
    return account.id, (credential.username, password)


@contextlib.asynccontextmanager
async def store_locked(service: service_process.Service, account_id: str) -> AsyncIterator[None]:
    """Another host keeps the account's lock; on SQLite, another process the file."""
    async with (
        delivery_harness.open_context(service.url, {}) as writer,
        delivery_harness.store_locked(delivery_harness.DeliveryHarness(writer, account_id)),
    ):
        yield
