"""A delivery engine that runs in a test: a real context, a real name server, and a clock that stands until moved.

    async with engine_harness.delivering_to(url, {"RCPT": "550 5.1.1 nobody here"}) as (peer, harness):
        seen = await harness.settle(await harness.send("ada@example.net"))

Mail for example.net goes to mx.example.net, which is 127.0.0.1; `zones` says otherwise. The clock decides when
recipients are due; provider queues and breakers use the event loop's time. Whenever a message is final the store is
verified, and at the end the log must not hold an error.
"""

import asyncio
import contextlib
import secrets
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pytest

from postroad import config, context
from postroad.delivery import attempter, provider_queue
from postroad.delivery import engine as delivery_engine
from postroad.network.smtp import smtp_connection
from postroad.roles import composition
from postroad.services.accounts import account_registry as accounts
from postroad.services.messages import lookup as messages
from postroad.services.operations import operator_jobs
from postroad.storage.mail import attempts as stored_attempts
from postroad.storage.mail import messages as stored_messages
from postroad.storage.mail import queue_views, suppressions
from postroad.storage.operations import processes as stored_provider_queues
from tests import accepted_mail, contexts, dns_server, sections, smtp_peers
from tests.delivery import bulk_queue, parts

HELLO_NAME: Final = "relay.example.com"
HOST: Final = "mx.example.net"
CREDITS: Final = 1_000
FINAL: Final = frozenset({"delivered", "bounced", "failed"})
# Destinations are on loopback.
QUICK: Final = {
    "allow_private": ["127.0.0.0/8", "::1"],
    "mta_sts": False,
    "sign": False,
    "grace_seconds": 5,
    "poll_milliseconds": 20,
    "retry_seconds": [60, 300],
}
# For a test with a silent peer.
SHORT_TIMEOUTS: Final[dict[str, Any]] = {"timeout_seconds": 1}


@dataclass(frozen=True, slots=True)
class Seen:
    """A message as the store shows it."""

    message: stored_messages.Message
    recipients: list[stored_messages.Recipient]
    attempts: list[stored_attempts.Attempt]

    @property
    def recipient(self) -> stored_messages.Recipient:
        """The only one."""
        assert len(self.recipients) == 1
        return self.recipients[0]

    @property
    def attempt(self) -> stored_attempts.Attempt:
        """The only one."""
        assert len(self.attempts) == 1
        return self.attempts[0]

    @property
    def standing(self) -> tuple[str, int, int | None]:
        """Status, attempts and last code of the only recipient."""
        return self.recipient.status, self.recipient.attempt_count, self.recipient.last_smtp_code

    def by_address(self) -> dict[str, stored_messages.Recipient]:
        """The recipients by their addresses."""
        return {recipient.email: recipient for recipient in self.recipients}


@dataclass(slots=True)
class EngineHarness:
    """A running engine, and the account whose mail it brings."""

    ctx: context.Context
    clock: contexts.Clock
    dns: dns_server.DnsServer
    account_id: str
    engine: delivery_engine.Engine
    log: list[Any]

    async def send(self, *to: str, **fields: Any) -> str:
        """Accept a message and return its id."""
        return await accepted_mail.accept(self.ctx, self.account_id, to=to or ("ada@example.net",), **fields)

    async def prove(self, email: str = "first@example.net") -> None:
        """Have the destination answer once: only then it gets more than a few recipients at a time."""
        assert (await self.settle(await self.send(email))).standing == ("delivered", 1, 250)

    async def send_bytes(self, mime: bytes, email: str = "ada@example.net") -> str:
        """Accept a message with exactly these bytes, as the SMTP listener would."""
        made = bulk_queue.submission(self.ctx, self.account_id, [email], now=self.clock.now, mime=mime)
        await self.ctx.accept_commits.submit(made)
        self.ctx.mail_wakeup.set()
        return made.message.id

    async def see(self, message_id: str) -> Seen:
        """The message as it stands now."""
        message, reached = await messages.find(self.ctx, self.account_id, message_id)
        async with self.ctx.store.reading() as tx:
            return Seen(message, reached, await stored_attempts.of_message(tx, self.account_id, message_id))

    async def settle(self, message_id: str, *, attempts: int = 1) -> Seen:
        """The message when each recipient is final or was tried this often, and the engine holds nothing of it."""

        async def is_settled() -> bool:
            _, reached = await messages.find(self.ctx, self.account_id, message_id)
            return all(one.status in FINAL or one.attempt_count >= attempts for one in reached)

        await parts.until(is_settled)
        await self.rest(message_id)
        report = await operator_jobs.check_consistency(self.ctx)
        assert report.findings == []
        return await self.see(message_id)

    async def rest(self, message_id: str) -> None:
        """Until the engine holds no recipient of the message: a result is on disk a moment before that."""

        async def is_free() -> bool:
            return all(key[1] != message_id for key in self.engine._leases._held)

        await parts.until(is_free)

    def pass_seconds(self, seconds: float) -> None:
        """Move the clock, and have the engine look."""
        self.clock.pass_seconds(seconds)
        self.ctx.mail_wakeup.set()

    async def credits(self) -> tuple[int, int]:
        """What the account has spent, and what is reserved."""
        account = await accounts.find(self.ctx, self.account_id)
        return CREDITS - account.available - account.reserved, account.reserved

    async def suppressed(self, *emails: str) -> dict[str, str]:
        """Which of the addresses are on the list, and why."""
        async with self.ctx.store.reading() as tx:
            found = await suppressions.find(tx, [(self.account_id, email) for email in emails])
        return {email: suppression.reason for (_, email), suppression in found.items()}

    async def due_in(self, message_id: str) -> float:
        """In how many seconds the only recipient of a message is tried again."""
        async with self.ctx.store.scanning() as tx:
            chosen = queue_views.Filter(message_id=message_id)
            (row,) = await queue_views.page(tx, chosen, state=queue_views.WAITING, limit=2)
        return (row.due_at - self.clock.now) / contexts.SECOND

    async def pool_states(self) -> dict[str, str]:
        """The provider queues in the store."""
        async with self.ctx.store.reading() as tx:
            return {queue.name: queue.state for queue in await stored_provider_queues.queues_since(tx, 0)}


def zones_of(hosts: Mapping[str, str], *, domain: str = "example.net") -> dns_server.Zones:
    """A domain whose mail hosts, in this order of preference, have these addresses."""
    records = [f"{number}0 {host}." for number, host in enumerate(hosts, start=1)]
    return {domain: {"MX": records}, **{host: {"A": [address]} for host, address in hosts.items()}}


def loopback_addresses(count: int) -> list[str]:
    """Addresses that no other test uses at this time, so that peers on them can share a port."""
    network = f"127.{secrets.randbelow(250) + 2}.{secrets.randbelow(250) + 2}"
    return [f"{network}.{number}" for number in range(1, count + 1)]


@contextlib.asynccontextmanager
async def running_engine(
    url: str,
    *,
    port: int,
    zones: dns_server.Zones | None = None,
    providers: Mapping[str, object] | None = None,
    clock: contexts.Clock | None = None,
    account_id: str = "",
    tls_reports: Mapping[str, object] | None = None,
    upstreams: Sequence[Mapping[str, object]] = (),
    routes: Sequence[Mapping[str, object]] = (),
    sources: Sequence[Mapping[str, object]] = (),
    timeout_seconds: float | None = None,
    idle_seconds: float = provider_queue.IDLE_SECONDS,
    **delivery: Any,
) -> AsyncIterator[EngineHarness]:
    """An engine on the store at `url`, for the time of the block; `delivery` and the others are settings.

    Peers have `timeout_seconds` to answer, and connections are kept for `idle_seconds`.

    With an account, it is another host of the same installation.
    """
    clock = clock or contexts.Clock()
    async with dns_server.running(zones_of({HOST: "127.0.0.1"}) if zones is None else zones) as dns:
        settings = config.load(
            environment={},
            overrides={
                "database": {"url": url},
                "security": {"installation_key": contexts.SECRET_KEY},
                **sections.spread("delivery", {**QUICK, "mx_port": port, "resolvers": [dns.address], **delivery}),
                "providers": providers or {},
                "tls_reports": tls_reports or {},
                "warmup": {"enabled": False},
                "upstreams": upstreams,
                "routes": routes,
                "sources": sources,
            },
        )
        async with composition.open_context(settings, clock=clock) as ctx:
            if not account_id:
                account_id = (await accounts.create(ctx, "Shop")).id
                await accepted_mail.allow_sending(ctx, account_id, amount=CREDITS)
            with pytest.MonkeyPatch.context() as constants:
                constants.setattr(provider_queue, "IDLE_SECONDS", idle_seconds)
                if timeout_seconds is not None:
                    timeouts = smtp_connection.Timeouts(timeout_seconds, timeout_seconds, timeout_seconds)
                    constants.setattr(attempter, "TIMEOUTS", timeouts)
                async with running(ctx) as (started, log):
                    yield EngineHarness(ctx, clock, dns, account_id, started, log)


@contextlib.asynccontextmanager
async def delivering_to(
    url: str,
    script: smtp_peers.Script | None = None,
    *,
    extensions: tuple[str, ...] = smtp_peers.ALL_EXTENSIONS,
    certificate: ssl.SSLContext | None = None,
    host: str = "127.0.0.1",
    receive_buffer: int = 0,
    **settings: Any,
) -> AsyncIterator[tuple[smtp_peers.Peer, EngineHarness]]:
    """A peer that does what the script says (`smtp_peers.serving`), and an engine whose mail it gets."""
    async with (
        smtp_peers.serving(
            script, extensions=extensions, tls=certificate, host=host, receive_buffer=receive_buffer
        ) as peer,
        running_engine(url, port=peer.port, **settings) as harness,
    ):
        yield peer, harness


@contextlib.asynccontextmanager
async def running(ctx: context.Context) -> AsyncIterator[tuple[delivery_engine.Engine, list[Any]]]:
    """An engine on a context, for the time of the block, and what it logs."""
    log, lines = parts.logger()
    stopping = asyncio.Event()
    started = delivery_engine.Engine(ctx, hello_name=HELLO_NAME, log=log)
    task = asyncio.create_task(started.run(stopping))
    try:
        yield started, lines
    finally:
        stopping.set()
        await task
    assert [entry for entry in lines if entry["log_level"] in {"error", "critical"}] == []
