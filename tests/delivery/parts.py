"""The parts of an engine, put together for tests that look at one of them: real store, real peers, no walk of its own.

    async with parts.opened(url) as made:
        await made.accept("ada@example.net")
        (claim,) = await made.claim()

Routes are set by the test (`Router`); provider queues and breakers use the loop's clock unless a `Time` is given.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from postroad import config, context
from postroad.delivery import attempter, controls, dispatcher, permits, provider_queue, recorder, routing
from postroad.mail.signing import signer_pool
from postroad.model.delivery import adaptive_rate, tls_policy
from postroad.model.units import times
from postroad.network.smtp import smtp_connection
from postroad.protocol.smtp import values
from postroad.roles import composition
from postroad.services.accounts import account_registry as accounts
from postroad.services.messages import lookup as messages
from postroad.storage.mail import messages as stored_recipients
from postroad.storage.mail import queue
from tests import accepted_mail, contexts, sections

PLAIN: Final = tls_policy.TlsPolicy(tls_policy.Mode.PLAIN)
# Longer than any test waits: what ends sooner was ended.
TIMEOUTS: Final = smtp_connection.Timeouts(connect=120, reply=120, content=120)
TIMEOUT_SECONDS: Final = 300.0
WORKER: Final = "worker of the test"
FOREVER: Final = 1e9


class Time:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Router:
    """Routes by domain, as a test has set them; those that are only found when asked for are in `to_find`."""

    def __init__(self) -> None:
        self.known: dict[str, routing.Route | routing.NoRoute] = {}
        self.to_find: dict[str, routing.Route | routing.NoRoute] = {}
        self.asked: list[str] = []
        self.go_on = asyncio.Event()
        self.go_on.set()

    def cached(self, domain: str) -> routing.Route | routing.NoRoute | None:
        return self.known.get(domain)

    async def route(self, domain: str) -> routing.Route | routing.NoRoute:
        self.asked.append(domain)
        await self.go_on.wait()
        self.known[domain] = self.to_find[domain]
        return self.known[domain]


def host_at(port: int, *, address: str = "127.0.0.1", name: str = "mx.example.net") -> routing.Host:
    """A host that is spoken to in plain text."""
    return routing.Host(name, address, port, PLAIN)


def route_to(*there: routing.Host, name: str = "mx.example.net", provider: str = "others") -> routing.Route:
    """A route to these hosts, valid for as long as a test takes."""
    return routing.Route(name, provider, there, FOREVER)


NOWHERE: Final = routing.NoRoute(
    values.Cause.DOMAIN_NOT_FOUND, detail="nosuch.example does not exist", valid_until=FOREVER
)


def break_down(known: routing.Hosts, host: routing.Host) -> None:
    """Let a host fail until its breaker opens."""
    for _ in range(adaptive_rate.FAILURES_TO_OPEN):
        known.failed(host)


async def connect(host: routing.Host) -> smtp_connection.SmtpConnection:
    """A real connection."""
    destination = smtp_connection.Destination(host.name, host.address, host.port, host.tls)
    return await smtp_connection.connect(destination, hello_name="relay.example.com", timeouts=TIMEOUTS)


@dataclass(slots=True)
class Parts:
    """What `opened` makes."""

    ctx: context.Context
    clock: contexts.Clock
    account_id: str
    held: recorder.Leases
    hosts: routing.Hosts
    services: provider_queue.DeliveryServices
    log: list[Any]
    wakes: list[None] = field(default_factory=list)
    router: Router = field(default_factory=Router)

    def dispatching(self) -> dispatcher.Dispatcher:
        """A dispatcher on these parts."""
        return dispatcher.Dispatcher(self.ctx, self.router, self.hosts, self.services)  # type: ignore[arg-type]

    async def take_back(self, job: attempter.Job) -> None:
        """Give a provider queue a job that it may not begin any more, and wait until the lease is given back."""
        one = self.new_provider_queue()
        async with self.ctx.store.reading() as tx:
            await self.services.holds.refresh(tx)
        one.capacity.reserve([job])
        one.add(job)
        await until(lambda: len(self.held) == 0)
        one.close()
        await one.finish()

    def new_provider_queue(
        self, *, connections: int = 10, rate: int = 1000, most: int = 100
    ) -> provider_queue.ProviderQueue:
        """A provider queue on these parts."""
        limits = config.Provider(connections=connections, messages_per_second=rate, messages_per_connection=most)
        return provider_queue.ProviderQueue("mx.example.net", limits, self.services)

    async def accept(self, *to: str, account_id: str = "", **fields: Any) -> str:
        """Accept a message and return its id."""
        return await accepted_mail.accept(
            self.ctx, account_id or self.account_id, to=to or ("ada@example.net",), **fields
        )

    async def claim(self) -> list[queue.Claimed]:
        """Take everything that is ready."""
        async with self.ctx.store.transaction() as tx:
            wanted = [
                queue.ClaimRequest(queue_key, 1000) for queue_key in await queue.queue_keys(tx, after="", limit=1000)
            ]
            claimed = await queue.claim(tx, wanted, lease_until=self.held.until(), worker=self.held.worker)
        return self.held.take(claimed)

    async def jobs(self, *to: str, count: int = 1, route: routing.Route) -> list[attempter.Job]:
        """Accepted, claimed and prepared."""
        for _ in range(count):
            await self.accept(*to)
        made = attempter.jobs_of(await self.claim(), route)
        await self.services.message_loader.prepare(made, lambda _: None)
        return made

    async def ready(self) -> list[str]:
        """The recipients' ids that anybody could claim now."""
        async with self.ctx.store.transaction() as tx:
            wanted = [
                queue.ClaimRequest(queue_key, 1000) for queue_key in await queue.queue_keys(tx, after="", limit=1000)
            ]
            rows = await queue.claim(tx, wanted, lease_until=self.clock() + 1, worker="somebody")
            await queue.release(tx, [row.key for row in rows], now=0, worker="somebody")
        return [row.recipient_id for row in rows]

    async def recipients(self, message_id: str) -> list[stored_recipients.Recipient]:
        """A message's recipients as the store shows them."""
        return (await messages.find(self.ctx, self.account_id, message_id))[1]

    async def statuses(self, message_id: str) -> list[str]:
        """How a message's recipients stand."""
        return [recipient.status for recipient in await self.recipients(message_id)]

    def events(self) -> list[str]:
        """The names of the log's lines."""
        return [entry["event"] for entry in self.log]


def give(one: provider_queue.ProviderQueue, jobs: Sequence[attempter.Job]) -> None:
    """Jobs as a dispatcher gives them."""
    for job in jobs:
        one.capacity.reserve([job])
    for job in jobs:
        one.add(job)


async def cut(one: provider_queue.ProviderQueue) -> list[attempter.Job]:
    """End a provider queue without waiting for what it sends; what it had not begun."""
    left = one.close()
    one.abort()
    async with asyncio.timeout(TIMEOUT_SECONDS):
        await one.finish()
    return left


def logger() -> tuple[Any, list[Any]]:
    """A logger, and the lines that it was given."""
    capture = structlog.testing.LogCapture()
    wrapper = structlog.make_filtering_bound_logger("info")
    return structlog.wrap_logger(None, processors=[capture], wrapper_class=wrapper), capture.entries


@contextlib.asynccontextmanager
async def opened(
    url: str,
    *,
    time: Time | None = None,
    connections: int = 100,
    signer: signer_pool.DkimSigner | None = None,
    connecting: attempter.Connect = connect,
    **delivery: object,
) -> AsyncIterator[Parts]:
    """Parts on the store at `url`, for the time of the block; what was sent is recorded before it ends."""
    settings = config.load(
        environment={},
        overrides={
            "database": {"url": url},
            "security": {"installation_key": contexts.SECRET_KEY},
            **sections.spread("delivery", {"retry_seconds": [60], **delivery}),
        },
    )
    clock, (log, lines) = contexts.Clock(), logger()
    async with composition.open_context(settings, clock=clock) as ctx:
        account = await accounts.create(ctx, "Shop")
        await accepted_mail.allow_sending(ctx, account.id)
        tick = time or asyncio.get_running_loop().time
        held = recorder.Leases(ctx.store, worker=WORKER, seconds=60, clock=clock, log=log)
        known, wakes = routing.Hosts(tick), list[None]()
        trusted = times.LeaseClock(settings.testing.lease_seconds * contexts.SECOND)
        sources = controls.SourceTable(ctx, held, tick)
        services = provider_queue.DeliveryServices(
            ctx=ctx,
            leases=held,
            holds=controls.HoldCache(ctx, tick),
            sources=sources,
            message_loader=attempter.MessageLoader(ctx, signer, log),
            attempter=attempter.Attempter(known, connecting),
            recorder=recorder.Recorder(ctx, held, sources, log),
            permits=permits.Permits(connections),
            log=log,
            clock=tick,
            trusted_clock=lambda: trusted.expired_before(now=clock(), monotonic=tick()),
            wake=lambda: wakes.append(None),
        )
        try:
            yield Parts(ctx, clock, account.id, held, known, services, lines, wakes)
        finally:
            await services.recorder.close(seconds=TIMEOUT_SECONDS)


async def until(is_so: Callable[[], bool | Awaitable[bool]]) -> None:
    """Ask again and again, for a bounded time, until it is so."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while True:
            answer = is_so()
            if answer if isinstance(answer, bool) else await answer:
                return
            await asyncio.sleep(0.005)
