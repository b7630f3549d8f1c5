"""A submission listener that listens on free ports, an account that may send, and clients that are connected to it."""

import asyncio
import base64
import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiosmtplib
import trustme

from postroad import context
from postroad.services.operations import certificates
from postroad.storage.mail import message_search, messages
from postroad.storage.people import accounts, credentials
from postroad.submission import listeners as submission_listeners
from tests.api import app_server

HOST = "127.0.0.1"
NAME = "mail.example.com"
CLIENT = "client.example.org"
SENDER = "shop@example.com"
ADA = "ada@example.net"
GRACE_SECONDS = 10
# A bound for a machine that is busy with other tests.
TIMEOUT_SECONDS = 600

MESSAGE = b"From: Shop <shop@example.com>\r\nTo: ada@example.net\r\nSubject: Your order\r\n\r\nIt is on its way.\r\n"


@dataclass(frozen=True, slots=True)
class Files:
    """A certificate with its chain, and its key."""

    chain: Path
    key: Path


def issue(authority: trustme.CA, folder: Path) -> Files:
    """A new certificate for this host, at the same place each time."""
    issued = authority.issue_cert(HOST, "localhost")
    files = Files(folder / "chain.pem", folder / "key.pem")
    issued.private_key_pem.write_to_path(str(files.key))
    files.chain.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    return files


@dataclass(frozen=True, slots=True)
class SubmissionServer:
    """A running listener, and who may send through it."""

    ctx: context.Context
    account: accounts.Account
    credential: credentials.Credential
    password: str = field(repr=False)
    lines: app_server.CapturedLog
    addresses: Mapping[str, tuple[str, int]]
    authority: trustme.CA

    @property
    def login(self) -> tuple[str, str]:
        return self.credential.username, self.password

    def trusting(self) -> ssl.SSLContext:
        """A client's TLS that knows the authority."""
        chosen = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.authority.configure_trust(chosen)
        return chosen

    @contextlib.asynccontextmanager
    async def client(self, *, log_in: bool = True) -> AsyncIterator[aiosmtplib.SMTP]:
        """A client that has said hello in the clear, and has logged in unless told otherwise."""
        host, port = self.addresses["listen"]
        client = aiosmtplib.SMTP(
            hostname=host, port=port, local_hostname=CLIENT, start_tls=False, timeout=TIMEOUT_SECONDS
        )
        async with client:
            await client.ehlo()
            if log_in:
                await client.login(*self.login)
            yield client

    @contextlib.asynccontextmanager
    async def raw(self) -> AsyncIterator["Raw"]:
        """A connection that has logged in and on which anything can be said."""
        reader, writer = await asyncio.open_connection(*self.addresses["listen"])
        login = base64.b64encode("\0".join(("", *self.login)).encode())
        try:
            connection = Raw(reader, writer)
            # The first reply is the greeting.
            assert b"CHUNKING" in await connection.say(b"EHLO client.example.org\r\n", replies=2)
            assert (await connection.say(b"AUTH PLAIN " + login + b"\r\n")).startswith(b"235 2.7.0")
            yield connection
        finally:
            writer.close()
            await writer.wait_closed()

    def logged(self, verb: str) -> list[dict[str, Any]]:
        """What the log says of a verb."""
        return [line for line in self.lines.kept if line["event"] == "submission" and line["verb"] == verb]

    async def stored(self) -> list["Stored"]:
        """What was accepted of the account, newest first."""
        everything = message_search.Filter(after="", before="~")
        async with self.ctx.store.reading() as tx:
            found = await message_search.page(tx, self.account.id, everything, limit=100)
            return [
                Stored(
                    message,
                    [each.email for each in await messages.recipients(tx, self.account.id, message.id)],
                    await messages.body(tx, self.account.id, message.id) or b"",
                )
                for message in found
            ]


@dataclass(frozen=True, slots=True)
class Raw:
    """A connection, octet by octet."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def say(self, octets: bytes, *, replies: int = 1) -> bytes:
        """Send these octets, and read so many replies, each of one line or more."""
        self.writer.write(octets)
        received = b""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while replies:
                line = await self.reader.readuntil(b"\n")
                received += line
                replies -= line[3:4] == b" "
        return received


@dataclass(frozen=True, slots=True)
class Stored:
    """A message as it is on disk."""

    message: messages.Message
    recipients: list[str]
    body: bytes


async def send(client: aiosmtplib.SMTP, content: bytes = MESSAGE, *to: str, sender: str = SENDER) -> str:
    """Hand a message in; the text of the last reply. A refusal is aiosmtplib's exception."""
    await client.mail(sender)
    for recipient in to or (ADA,):
        await client.rcpt(recipient)
    reply = await client.data(content)
    assert reply.code == 250
    return reply.message


@contextlib.asynccontextmanager
async def running(
    ctx: context.Context, *, lines: app_server.CapturedLog
) -> AsyncIterator[Mapping[str, tuple[str, int]]]:
    """The listeners that the settings name, until the block ends; gives their addresses by the key of their setting."""
    certificate = certificates.load(ctx.settings)
    listeners = submission_listeners.listeners(ctx, name=NAME, certificate=certificate, log=lines.logger())
    for listener in listeners.values():
        await listener.start(HOST, 0)
    try:
        yield {key: listener.address for key, listener in listeners.items()}
    finally:
        for listener in listeners.values():
            await listener.stop(grace_seconds=GRACE_SECONDS)
