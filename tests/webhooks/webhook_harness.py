"""Accounts with endpoints, and an engine that sends to them: a real context, and a clock that tests move.

    async with webhook_server.running(tls=False) as server, webhook_harness.opened(url) as harness:
        endpoint = await harness.endpoint(server.url)
        delivery_id = await harness.write(endpoint)
        async with harness.delivering():
            seen = await harness.settle(endpoint, delivery_id)

The clock decides what is due and what is signed; how long an attempt takes is real time. Whenever a delivery has
ended the store is verified, and when an engine has ended its log must not hold an error, unless the test says so.
"""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import structlog

from postroad import context
from postroad.model.events import events, webhook_schedule
from postroad.model.units import identifiers
from postroad.roles import composition
from postroad.services.accounts import account_registry as accounts
from postroad.services.operations import operator_jobs
from postroad.services.webhooks import endpoints as services_endpoints
from postroad.storage.mail import webhooks
from postroad.telemetry import logs
from postroad.webhooks import engine
from tests import contexts, sections

# A wait that is longer has failed; nothing here takes more than a few seconds.
TIMEOUT_SECONDS: Final = 300.0
LOOK_SECONDS: Final = 0.005
WORKER: Final = "worker of the test"
# So that endpoints on loopback need no certificate; the guard has tests of its own.
QUICK: Final = {"allow_insecure": True, "poll_milliseconds": 20, "grace_seconds": 5}


@dataclass(frozen=True, slots=True)
class Seen:
    """A delivery as the store shows it."""

    delivery: webhooks.Delivery
    attempts: list[webhooks.Attempt]

    @property
    def standing(self) -> tuple[str, int]:
        """Its state, and the attempts that are counted."""
        return self.delivery.state, self.delivery.attempt_count

    @property
    def statuses(self) -> list[int | None]:
        """What the endpoint answered, attempt by attempt."""
        return [attempt.status_code for attempt in self.attempts]


@dataclass(slots=True)
class WebhookHarness:
    """A context whose accounts have endpoints."""

    ctx: context.Context
    clock: contexts.Clock
    log: list[Any] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    async def endpoint(self, url: str) -> webhooks.Webhook:
        """A new account's endpoint."""
        account = await accounts.create(self.ctx, f"Shop {next(self.numbers)}")
        return (await services_endpoints.save(self.ctx, account.id, url=url)).webhook

    async def change(self, endpoint: webhooks.Webhook, *, url: str = "", enabled: bool = True) -> None:
        """What `PUT /v1/webhook` does."""
        await services_endpoints.save(self.ctx, endpoint.account_id, url=url or endpoint.url, enabled=enabled)

    async def write(self, endpoint: webhooks.Webhook, **fields: Any) -> str:
        """Write an event, as the outbox does, and return the id of its delivery."""
        now = self.clock.now
        event_id = self.ctx.new_id(identifiers.EVENT, now=now)
        delivery = webhooks.Delivery(
            account_id=endpoint.account_id,
            webhook_id=endpoint.id,
            id=self.ctx.new_id(identifiers.WEBHOOK_DELIVERY, now=now),
            event_id=event_id,
            event_type=events.EventType.DELIVERED,
            message_id="em_1",
            recipient_id="rcp_1",
            url=endpoint.url,
            body=events.body(event_id, events.EventType.DELIVERED, created_at=now, data=events.Data(subject="é☃")),
            due_at=now,
            created_at=now,
        )
        async with self.ctx.store.transaction() as tx:
            await webhooks.insert_deliveries(tx, [msgspec.structs.replace(delivery, **fields)])
        self.ctx.webhook_wakeup.set()
        return delivery.id

    async def see(self, endpoint: webhooks.Webhook, delivery_id: str) -> Seen:
        """A delivery as it stands now."""
        async with self.ctx.store.reading() as tx:
            found = await webhooks.delivery_by_id(tx, endpoint.account_id, endpoint.id, delivery_id, ended_after=0)
            assert found is not None
            tried = await webhooks.attempts_of_deliveries(tx, endpoint.account_id, endpoint.id, [delivery_id])
        return Seen(found, tried)

    async def settle(self, endpoint: webhooks.Webhook, delivery_id: str, *, attempts: int = 1) -> Seen:
        """A delivery when it has ended or this many of its attempts are recorded."""

        async def is_settled() -> bool:
            seen = await self.see(endpoint, delivery_id)
            return seen.delivery.ended_at is not None or len(seen.attempts) >= attempts

        await until(is_settled)
        assert (await operator_jobs.check_consistency(self.ctx)).findings == []
        return await self.see(endpoint, delivery_id)

    async def all_succeed(self, written: Sequence[tuple[webhooks.Webhook, str]]) -> None:
        """Wait until these have all ended, and see that they succeeded with their first attempt."""

        async def have_ended() -> bool:
            return all([(await self.see(*one)).delivery.ended_at is not None for one in written])

        await until(have_ended)
        assert [(await self.see(*one)).standing for one in written] == [("succeeded", 1)] * len(written)
        assert (await operator_jobs.check_consistency(self.ctx)).findings == []

    async def claim_as(self, endpoint: webhooks.Webhook, worker: str, *, seconds: int = 30) -> list[Any]:
        """Take what is ready, as another worker would."""
        until_then = self.clock.now + seconds * contexts.SECOND
        async with self.ctx.store.transaction() as tx:
            return await webhooks.claim(tx, [(endpoint.id, 100)], lease_until=until_then, worker=worker)

    async def is_due(self, *, at: int) -> bool:
        """Whether anything that waits is due at a time."""
        async with self.ctx.store.reading() as tx:
            return await webhooks.is_due(tx, now=at)

    def pass_seconds(self, seconds: float) -> None:
        """Move the clock, and have the engine look."""
        self.clock.pass_seconds(seconds)
        self.ctx.webhook_wakeup.set()

    def pass_until(self, at: int) -> None:
        """The same up to a time."""
        self.clock.now = at
        self.ctx.webhook_wakeup.set()

    def events(self) -> list[str]:
        """The names of the log's lines."""
        return [line["event"] for line in self.log]

    @contextlib.asynccontextmanager
    async def delivering(self, *, errors: bool = False) -> AsyncIterator[engine.Engine]:
        """An engine for the time of the block; `errors` says whether its log may hold some."""
        stopping = asyncio.Event()
        made = engine.Engine(self.ctx, log=self.logger())
        task = asyncio.create_task(made.run(stopping))
        try:
            yield made
        finally:
            stopping.set()
            await task
        assert errors or [line for line in self.log if line["log_level"] in {"error", "critical"}] == []

    def logger(self) -> logs.Logger:
        """A logger whose lines are in `log`."""
        capture = structlog.testing.LogCapture()
        capture.entries = self.log
        wrapper = structlog.make_filtering_bound_logger("info")
        made: logs.Logger = structlog.wrap_logger(None, processors=[capture], wrapper_class=wrapper)
        return made

    def parts(self, *, slots: int = 10, per_account: int = 5, time: Callable[[], float] | None = None) -> "Parts":
        """The parts of an engine, without its loop; `time` measures the endpoints, if not the event loop's time."""
        log, wakes, clock = self.logger(), list[None](), time or asyncio.get_running_loop().time
        handed_out = webhook_schedule.ConcurrencyBudget(slots=slots, per_account=per_account)

        def wake() -> None:
            wakes.append(None)

        results = engine.Recorder(self.ctx, worker=WORKER, wake=wake, log=log)
        attempts = engine.Attempter(self.ctx, handed_out, results, clock=clock, wake=wake, log=log)
        walk = engine.Dispatcher(self.ctx, handed_out, attempts, results, worker=WORKER, clock=clock, log=log)
        return Parts(handed_out, results, attempts, walk, wakes)


@dataclass(slots=True)
class Parts:
    """The parts of an engine."""

    shares: webhook_schedule.ConcurrencyBudget
    recorder: engine.Recorder
    attempting: engine.Attempter
    dispatching: engine.Dispatcher
    wakes: list[None]

    async def finish(self) -> None:
        """Let everything end that is under way."""
        await self.attempting.finish(grace_seconds=TIMEOUT_SECONDS)
        await self.recorder.close(seconds=TIMEOUT_SECONDS)


async def until(is_so: Callable[[], bool | Awaitable[bool]]) -> None:
    """Ask again and again, for a bounded time, until it is so."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while True:
            answer = is_so()
            if answer if isinstance(answer, bool) else await answer:
                return
            await asyncio.sleep(LOOK_SECONDS)


@contextlib.asynccontextmanager
async def opened(url: str, *, clock: contexts.Clock | None = None, **settings: Any) -> AsyncIterator[WebhookHarness]:
    """A harness on the store at `url`; `settings` are those of webhooks."""
    chosen = contexts.load(url, **sections.spread("webhooks", {**QUICK, **settings}), warmup={"enabled": False})
    clock = clock or contexts.Clock()
    async with composition.open_context(chosen, clock=clock) as ctx:
        yield WebhookHarness(ctx, clock)
