"""Webhooks sent by processes of their own and by this one, and what the store has afterwards.

`EndpointHarness` is the test's own access to the store: it writes events, runs an engine after the death of the process
under test, and proves at the end that the endpoint got what the log says.
"""

import asyncio
import collections
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from postroad import context
from postroad.model.events import events
from postroad.model.units import identifiers
from postroad.services.operations import operator_jobs
from postroad.services.webhooks import endpoints as services_endpoints
from postroad.storage.engine import store
from postroad.storage.mail import webhooks
from tests import webhook_server
from tests.contexts import SECOND, Clock
from tests.delivery import bulk_queue
from tests.reliability import delivery_harness, service_process
from tests.sections import spread
from tests.webhook_server import OK, ReceivedRequest, WebhookServer
from tests.webhooks import webhook_harness

LEASE_SECONDS = 5  # the least that there is
MAX_ATTEMPTS = 7
LATEST = "whd_~"  # behind every id


def sections(**changes: object) -> dict[str, dict[str, object]]:
    """Settings for endpoints on loopback: retries after a second."""
    chosen: dict[str, object] = {
        "allow_insecure": True,
        "retry_seconds": [1] * (MAX_ATTEMPTS - 1),
        "lease_seconds": 2 * LEASE_SECONDS,
        "grace_seconds": 2,
        "sign": False,
        "poll_milliseconds": 20,
        **changes,
    }
    return spread("webhooks", chosen)


@contextlib.asynccontextmanager
async def process(
    folder: Path, url: str, tables: Mapping[str, Mapping[str, object]], *, roles: Sequence[str] = ("webhooks",)
) -> AsyncIterator[service_process.Service]:
    """A process that sends webhooks; it is not started yet, and will have ended when the block does."""
    await asyncio.to_thread(folder.mkdir)
    service = service_process.Service(folder, url, roles=roles, sections=delivery_harness.as_toml(tables))
    async with service_process.ending(service):
        yield service


class Gate:
    """An answer that is held back until the gate opens."""

    def __init__(self, answer: bytes = OK) -> None:
        self._answer = answer
        self._is_open = asyncio.Event()

    async def __call__(self, _: ReceivedRequest) -> bytes:
        await self._is_open.wait()
        return self._answer

    def open(self) -> None:
        """Answer those who wait, and those who come later at once."""
        self._is_open.set()


@dataclass(slots=True)
class EndpointHarness:
    """A context of the test's own on the store, and an account with an endpoint."""

    ctx: context.Context
    endpoint: webhooks.Webhook
    log: list[Any] = field(default_factory=list)

    async def write(self, count: int = 1) -> list[str]:
        """Write events as the outbox does; returns their ids."""
        rows = [self._delivery(number) for number in range(count)]
        async with self.ctx.store.transaction() as tx:
            await webhooks.insert_deliveries(tx, rows)
        self.ctx.webhook_wakeup.set()
        return [row.event_id for row in rows]

    def _delivery(self, number: int) -> webhooks.Delivery:
        now, kind = self.ctx.clock(), events.EventType.DELIVERED
        event_id = self.ctx.new_id(identifiers.EVENT, now=now)
        return webhooks.Delivery(
            account_id=self.endpoint.account_id,
            webhook_id=self.endpoint.id,
            id=self.ctx.new_id(identifiers.WEBHOOK_DELIVERY, now=now),
            event_id=event_id,
            event_type=kind,
            message_id="em_1",
            recipient_id=f"rcp_{number}",
            url=self.endpoint.url,
            body=events.body(event_id, kind, created_at=now, data=events.Data(subject=f"Grüße {number}")),
            due_at=now,
            created_at=now,
        )

    async def deliveries(self) -> list[webhooks.Delivery]:
        """All deliveries, the oldest first."""
        account_id, webhook_id = self.endpoint.account_id, self.endpoint.id
        async with self.ctx.store.scanning() as tx:
            found = await webhooks.delivery_page(
                tx, account_id, webhook_id, before=LATEST, ended_after=0, limit=1_000_000
            )
        return found[::-1]

    async def attempts(self) -> list[list[webhooks.Attempt]]:
        """The log of each of them."""
        account_id, webhook_id = self.endpoint.account_id, self.endpoint.id
        ids = [delivery.id for delivery in await self.deliveries()]
        logs: dict[str, list[webhooks.Attempt]] = {delivery_id: [] for delivery_id in ids}
        async with self.ctx.store.scanning() as tx:
            for attempt in await webhooks.attempts_of_deliveries(tx, account_id, webhook_id, ids):
                logs[attempt.delivery_id].append(attempt)
        return [sorted(log, key=lambda attempt: attempt.number) for log in logs.values()]

    async def statuses_and_attempts(self) -> Counter[tuple[str, int, bool]]:
        """How many have each state, this many counted attempts, and a worker that holds them."""
        return Counter((one.state, one.attempt_count, is_held(one)) for one in await self.deliveries())

    async def end_leases(self) -> None:
        """Let an hour pass for what waits: leases are over, and the next attempts due. Nobody may be at work."""
        async with self.ctx.store.transaction() as tx:
            await let_time_pass(tx)
        self.ctx.webhook_wakeup.set()

    async def finished(self) -> None:
        """Until everything has ended."""

        async def is_so() -> bool:
            return all(delivery.ended_at is not None for delivery in await self.deliveries())

        await service_process.until(is_so)

    async def deliver_all(self) -> None:
        """Leases end, and an engine of the test's own sends what is left. Its log must hold no error."""
        await self.end_leases()
        office = webhook_harness.WebhookHarness(self.ctx, Clock(), self.log)
        async with office.delivering():
            await self.finished()

    async def audit(self) -> None:
        """The store is consistent."""
        assert (await operator_jobs.check_consistency(self.ctx)).findings == []

    async def prove(self, written: Sequence[str], receiver: WebhookServer) -> None:
        """All arrived and ended well: each with its own bytes, as often as its log says, never after a success.

        Only an attempt that was interrupted may have reached the endpoint, or not.
        """
        await self.audit()
        deliveries = await self.deliveries()
        arrived = bodies(receiver)
        assert arrived.keys() == set(written) == {delivery.event_id for delivery in deliveries}
        for delivery, log in zip(deliveries, await self.attempts(), strict=True):
            assert [attempt.number for attempt in log] == list(range(1, delivery.attempt_count + 1))
            assert (delivery.state, log[-1].status_code, log[-1].error) == ("succeeded", 200, None)
            assert all(attempt.error is not None or attempt.status_code != 200 for attempt in log[:-1])
            in_doubt = sum((attempt.error or "").startswith("interrupted:") for attempt in log)
            got = arrived[delivery.event_id]
            assert set(got) == {delivery.body}
            assert len(log) - in_doubt <= len(got) <= len(log) <= MAX_ATTEMPTS


async def prove_log(ctx: context.Context, account_id: str, receiver: WebhookServer) -> None:
    """The endpoint of the account got each event with its own bytes, and no more often than attempts were counted.

    On a machine that is too busy to answer within the five seconds of an attempt, there is more than one.
    """
    async with ctx.store.reading() as tx:
        endpoint = await webhooks.first_of(tx, account_id)
    assert endpoint is not None
    deliveries, arrived = await EndpointHarness(ctx, endpoint).deliveries(), bodies(receiver)
    assert arrived.keys() == {delivery.event_id for delivery in deliveries}
    for delivery in deliveries:
        got = arrived[delivery.event_id]
        assert set(got) == {delivery.body}
        assert len(got) <= delivery.attempt_count


def is_held(delivery: webhooks.Delivery) -> bool:
    """Whether a worker has it now."""
    return delivery.state == webhooks.State.WAITING and delivery.worker is not None


async def let_time_pass(tx: store.Transaction) -> None:
    """An hour, for what waits."""
    await tx.run_script(
        f"UPDATE webhook_deliveries SET due_at = due_at - {3600 * SECOND} WHERE state = 'waiting'"  # noqa: S608 - a number
    )


def bodies(receiver: WebhookServer) -> dict[str, list[bytes]]:
    """What the endpoint got, by the ids of events."""
    found: dict[str, list[bytes]] = collections.defaultdict(list)
    for request in receiver.requests:
        found[json.loads(request.body)["id"]].append(request.body)
    return found


def copies(receiver: WebhookServer) -> Counter[int]:
    """How many events came once, twice and so on."""
    return Counter(len(got) for got in bodies(receiver).values())


async def got(receiver: WebhookServer, count: int) -> None:
    """Until the endpoint has got so many requests."""
    async with asyncio.timeout(service_process.TIMEOUT_SECONDS):
        await receiver.received(count)


async def logged(service: service_process.Service, event: str, count: int = 1) -> None:
    """Until the process has said this so many times."""

    async def is_so() -> bool:
        return len(logged_events(service, event)) >= count

    await service_process.until(is_so)


def logged_events(service: service_process.Service, event: str) -> list[dict[str, Any]]:
    """Lines of a process's log with this event; the last one may not be complete yet."""
    lines = service.log.read_bytes().splitlines(keepends=True)
    found = [json.loads(line) for line in lines if line.endswith(b"\n")]
    return [line for line in found if line["event"] == event]


@contextlib.asynccontextmanager
async def open_harness(
    url: str, tables: Mapping[str, Mapping[str, object]], receiver_url: str
) -> AsyncIterator[EndpointHarness]:
    """The test's own context on the store, and an account with an endpoint."""
    async with delivery_harness.open_context(url, tables) as ctx:
        account_id = await bulk_queue.new_account(ctx, "Shop")
        yield EndpointHarness(ctx, await subscribe(ctx, account_id, receiver_url))


async def subscribe(ctx: context.Context, account_id: str, receiver_url: str) -> webhooks.Webhook:
    """Save this endpoint for all events of the account."""
    return (await services_endpoints.save(ctx, account_id, url=receiver_url)).webhook


@contextlib.asynccontextmanager
async def store_locked(ctx: context.Context) -> AsyncIterator[store.Transaction]:
    """While the block runs nobody else can record or claim: on SQLite the file is locked, else the table."""
    async with ctx.store.transaction() as tx:
        if ctx.store.dialect == "postgres":
            await tx.run_script("LOCK TABLE webhook_deliveries IN EXCLUSIVE MODE")
        yield tx


@dataclass(frozen=True, slots=True)
class WebhookScenario:
    """An endpoint, a running process that sends to it, and the harness."""

    receiver: WebhookServer
    service: service_process.Service
    open_harness: EndpointHarness


@contextlib.asynccontextmanager
async def running_scenario(folder: Path, url: str, **changes: object) -> AsyncIterator[WebhookScenario]:
    """A process that sends to an endpoint; `changes` are settings of webhooks."""
    tables = sections(**changes)
    async with (
        webhook_server.running(tls=False) as receiver,
        open_harness(url, tables, receiver.url) as opened,
        process(folder / "process", url, tables) as service,
    ):
        await service.start()
        yield WebhookScenario(receiver, service, opened)
