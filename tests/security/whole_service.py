"""The whole service for the security cases of mail: both listeners, the delivery engine, and the destination.

The roles are the real ones, on real sockets. The sink keeps what arrives as it came over the wire. Nothing is signed,
so that what is in the store and what arrives can be compared octet by octet. `settled` waits until everything that was
accepted has been delivered; it is the whole truth about what a case has led to.
"""

import asyncio
import base64
import contextlib
import functools
import re
import ssl
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import trustme

from postroad import config, context, roles
from postroad.roles import composition, service
from postroad.services.accounts import account_registry as accounts
from postroad.services.operations import gauges, operator_jobs
from postroad.services.people import credentials
from postroad.storage.mail import message_search, messages
from postroad.storage.people import accounts as stored_accounts
from postroad.storage.people import credentials as stored_credentials
from tests import accepted_mail, contexts, dns_server, sections, smtp_peers
from tests.api import app_server
from tests.delivery import engine_harness, parts
from tests.network import recording_listener
from tests.submission import submission_server

ROLES: Final = ("api", "submission", "delivery")
SENDER: Final = "shop@example.com"
ADA: Final = "ada@example.net"
BEGIN: Final = b"MAIL FROM:<shop@example.com>\r\nRCPT TO:<ada@example.net>\r\n"
# With all that a listener would add except the trace fields.
HEADER: Final = (
    b"From: Shop <shop@example.com>\r\nTo: ada@example.net\r\nSubject: Your order\r\n"
    b"Date: Mon, 1 Jan 2024 00:00:00 +0000\r\nMessage-ID: <1@example.com>\r\n"
)
MESSAGE: Final = HEADER + b"\r\nIt is on its way.\r\n"
# Where a session may take place: in the clear, after STARTTLS, or under TLS from the start.
WAYS: Final = ("clear", "starttls", "tls")


@dataclass(frozen=True, slots=True)
class Arrived:
    """A message that was accepted, and its copy at the sink."""

    message: messages.Message
    recipients: list[str]
    taken: smtp_peers.Transaction

    @property
    def names(self) -> list[str]:
        """The names of the header fields, as whoever splits at line ends of any kind would find them."""
        header = self.taken.content.partition(b"\r\n\r\n")[0].decode()
        return [line.partition(":")[0] for line in re.split(r"\r\n|\r|\n", header) if line[:1] not in {" ", "\t"}]


@dataclass(frozen=True, slots=True)
class WholeService:
    """A service, one account of it, and the only host that it sends to."""

    ctx: context.Context
    clock: contexts.Clock
    account: stored_accounts.Account
    credential: stored_credentials.Credential
    password: str = field(repr=False)
    addresses: Mapping[str, tuple[str, int]]
    http: httpx.AsyncClient
    sink: smtp_peers.Peer
    lines: app_server.CapturedLog
    trusting: ssl.SSLContext

    @property
    def login(self) -> tuple[str, str]:
        return self.credential.username, self.password

    # The SMTP listener.

    @contextlib.asynccontextmanager
    async def connect(self, way: str = "clear", *, log_in: bool = True) -> AsyncIterator[recording_listener.Connection]:
        """A session that has said hello, and has logged in unless told otherwise."""
        address = self.addresses["submission_tls" if way == "tls" else "submission"]
        async with recording_listener.connect(address, tls=self.trusting if way == "tls" else None) as connection:
            await connection.ask(b"EHLO client.example.org\r\n", replies=2)
            if way == "starttls":
                await self.secure(connection)
            if log_in:
                (reply,) = await connection.ask(plain("", *self.login))
                assert reply.startswith(b"235 2.7.0 ")
            yield connection

    async def secure(self, connection: recording_listener.Connection) -> None:
        """STARTTLS, and hello once more."""
        (reply,) = await connection.ask(b"STARTTLS\r\n")
        assert reply.startswith(b"220 ")
        await connection.writer.start_tls(self.trusting, server_hostname=submission_server.HOST)
        await connection.ask(b"EHLO client.example.org\r\n")

    async def hand_in(self, content: bytes, *, begin: bytes = BEGIN, way: str = "clear", verb: str = "DATA") -> str:
        """The reply to a message that is sent in a session of its own, as it is or dot by dot; the session goes on."""
        async with self.connect(way) as connection:
            await connection.ask(begin, replies=begin.count(b"\r\n"))
            if verb == "DATA":
                await connection.ask(b"DATA\r\n")
            reply = await hand_over(connection, content, verb=verb)
            assert await connection.ask(b"NOOP\r\n") == [b"250 2.0.0 OK"]
        return reply

    # The HTTP listener.

    async def post(self, **members: Any) -> httpx.Response:
        """`POST /emails`, with these members in the place of those of a plain message; None leaves one out."""
        body = {"from": SENDER, "to": ADA, "subject": "Your order", "text": "It is on its way.", **members}
        key = {"Idempotency-Key": uuid.uuid4().hex}
        return await self.http.post("/emails", json=body, headers=key)

    async def refuse(self, status: int = 400, code: str = "invalid_request", **members: Any) -> str:
        """The sentence of a refusal."""
        answer = await self.post(**members)
        assert (answer.status_code, answer.json().get("code")) == (status, code), (members, answer.text)
        return str(answer.json()["error"])

    # What has come of it.

    async def stored(self) -> Sequence[tuple[messages.Message, list[messages.Recipient], bytes]]:
        """The account's messages, oldest first."""
        async with self.ctx.store.reading() as tx:
            everything = message_search.Filter(after="", before="~")
            found = await message_search.page(tx, self.account.id, everything, limit=500)
            return [
                (
                    each,
                    await messages.recipients(tx, self.account.id, each.id),
                    await messages.body(tx, self.account.id, each.id) or b"",
                )
                for each in reversed(found)
            ]

    async def settled(self) -> list[Arrived]:
        """All that was accepted, delivered: as many messages at the sink as in the store, and the same octets."""

        async def is_final() -> bool:
            return all(one.status in engine_harness.FINAL for _, reached, _ in await self.stored() for one in reached)

        await parts.until(is_final)
        assert (await operator_jobs.check_consistency(self.ctx)).findings == []
        stored = await self.stored()
        taken = {transaction.content: transaction for transaction in self.sink.transactions}
        assert len(stored) == len(self.sink.transactions) == len(taken)
        assert {body for _, _, body in stored} == taken.keys()
        for transaction in taken.values():
            assert_lines(transaction.wire)
        return [Arrived(message, [one.email for one in reached], taken[body]) for message, reached, body in stored]


def plain(*parts: str) -> bytes:
    """AUTH PLAIN with identity, username and password, or whatever is given."""
    return b"AUTH PLAIN " + base64.b64encode("\0".join(parts).encode()) + b"\r\n"


async def hand_over(connection: recording_listener.Connection, content: bytes, *, verb: str = "DATA") -> str:
    """Send a content whose transaction has begun; the reply."""
    if verb == "DATA":
        sent = (b"\r\n" + content).replace(b"\r\n.", b"\r\n..")[2:] + b".\r\n"
    else:
        sent = b"BDAT %d LAST\r\n%b" % (len(content), content)
    (reply,) = await connection.ask(sent)
    return reply.decode()


def assert_lines(wire: bytes) -> None:
    """What is on the wire is lines that end in CRLF; where one begins with a dot, the dot is doubled."""
    assert wire.endswith(b"\r\n")
    assert wire.count(b"\r") == wire.count(b"\n") == wire.count(b"\r\n")
    assert all(line[:2] == b".." for line in wire.split(b"\r\n") if line.startswith(b"."))


@contextlib.asynccontextmanager
async def standing(
    url: str, *, folder: Path, authority: trustme.CA, **submission: object
) -> AsyncIterator[WholeService]:
    """A service for the time of the block; `submission` are settings of that section."""
    clock, lines = contexts.Clock(), app_server.CapturedLog()
    files = submission_server.issue(authority, folder)
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(trusting)
    async with (
        smtp_peers.serving() as sink,
        dns_server.running(engine_harness.zones_of({engine_harness.HOST: "127.0.0.1"})) as dns,
    ):
        settings = config.load(
            environment={},
            overrides={
                "database": {"url": url},
                "security": {"installation_key": contexts.SECRET_KEY},
                "http": {"listen": "127.0.0.1:0", "tls": False},
                "warmup": {"enabled": False},
                # The clock stands still here, and every route is asked many times.
                "limits": {"api_rate": 1_000_000},
                **sections.spread(
                    "delivery",
                    {
                        **engine_harness.QUICK,
                        "mx_port": sink.port,
                        "resolvers": [dns.address],
                        "hostname": submission_server.NAME,
                    },
                ),
                "submission": {
                    "listen": "127.0.0.1:0",
                    "tls_listen": "127.0.0.1:0",
                    "auth_without_tls": True,
                    **submission,
                },
                "tls": {"certificate": str(files.chain), "key": str(files.key)},
            },
        )
        async with composition.open_context(settings, clock=clock) as ctx, _working(ctx, lines) as addresses:
            account = await accounts.create(ctx, "Shop")
            await accepted_mail.allow_sending(ctx, account.id)
            credential, password = await credentials.create(ctx, account.id, "main")
            host, port = addresses["http"]
            async with httpx.AsyncClient(
                base_url=f"http://{host}:{port}",
                auth=(credential.username, password),
                timeout=submission_server.TIMEOUT_SECONDS,
                verify=trusting,
            ) as http:
                yield WholeService(
                    ctx, clock, account, credential, password, addresses, http, sink, lines=lines, trusting=trusting
                )
    assert [line for line in lines.kept if line["level"] in {"error", "critical"}] == []


@contextlib.asynccontextmanager
async def _working(ctx: context.Context, lines: app_server.CapturedLog) -> AsyncIterator[Mapping[str, tuple[str, int]]]:
    """The roles at work; their addresses."""
    render_metrics = functools.partial(gauges.Gauges().text, ctx)
    role_context = roles.RoleContext(ctx, lines.logger(), asyncio.Event(), render_metrics)
    started = [await service.ROLES[name](role_context) for name in ROLES]
    async with asyncio.TaskGroup() as group:
        for role in started:
            group.create_task(_work(role))
        try:
            yield {what: where for role in started for what, where in role.addresses.items()}
        finally:
            role_context.stopping.set()


async def _work(role: roles.Started) -> None:
    await role.work()
