"""Delivery in processes of its own and in this one, all to a sink, and what the store says of it afterwards.

`Post` is the test's own look into the store: it queues mail, runs an engine beside the process under test or after its
death, and proves at the end that every recipient got what the store says.
"""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postroad import config, context
from postroad.roles import composition
from postroad.services.operations import operator_jobs
from postroad.storage.mail import queue, queue_views
from postroad.storage.people import accounts
from tests.contexts import SECRET_KEY
from tests.delivery import bulk_queue, engine_harness
from tests.reliability import service_process, sinks
from tests.sections import spread
from tests.storage import samples

DOMAIN = "example.net"
LEASE_SECONDS = 10  # the least that there is
WIDE = {"connections": 20, "messages_per_second": 100_000, "messages_per_connection": 100_000}

# What tests ask about an account beside the named queries.
QUESTIONS = {
    "statuses": "SELECT status, COUNT(*) FROM recipients WHERE account_id = $1 GROUP BY status",
    "attempts": (
        "SELECT email, verdict, response, in_doubt FROM attempts JOIN recipients ON recipients.id = recipient_id "
        "WHERE attempts.account_id = $1 ORDER BY started_at, email"
    ),
    "attempt_counts": "SELECT email, attempt_count FROM recipients WHERE account_id = $1",
}


def sections(sink: sinks.Sink, *, is_direct: bool = False, **delivery: Any) -> dict[str, Any]:
    """Settings that lead all mail to a sink and try again at once.

    The sink is an upstream, unless mail is to go directly to the hosts of its domains.
    """
    chosen: dict[str, object] = {
        "mx_port": sink.port,
        "allow_private": ["127.0.0.0/8"],
        "tls": "off",
        "sign": False,
        "mta_sts": False,
        "retry_seconds": [1, 1, 1],
        "lease_seconds": LEASE_SECONDS,
        "grace_seconds": 2,
        "poll_milliseconds": 20,
        **delivery,
    }
    connections = chosen.pop("pool_connections", WIDE["connections"])
    provider = {**WIDE, "connections": connections}
    upstream = {"name": "sink", "host": sink.host, "port": sink.port, "tls": "off", **provider}
    return {
        **spread("delivery", chosen),
        "providers": {"others": provider},
        "upstreams": [] if is_direct else [upstream],
    }


def as_toml(tables: Mapping[str, Any]) -> str:
    """The settings as a file has them."""
    listed = {f"[[{name}]]": entries for name, entries in tables.items() if isinstance(entries, list)}
    named = {f"[{name}]": [table] for name, table in tables.items() if not isinstance(table, list)}
    return "".join(
        f"{header}\n" + "".join(f"{key} = {_value(value)}\n" for key, value in table.items())
        for header, entries in {**named, **listed}.items()
        for table in entries
    )


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_value(part)}" for key, part in value.items()) + " }"
    return json.dumps(value)


@contextlib.asynccontextmanager
async def process(
    folder: Path, url: str, tables: Mapping[str, Mapping[str, object]]
) -> AsyncIterator[service_process.Service]:
    """A process that only delivers; it is not started yet, and will have ended when the block does."""
    await asyncio.to_thread(folder.mkdir)
    service = service_process.Service(folder, url, roles=("delivery",), sections=as_toml(tables))
    async with service_process.ending(service):
        yield service


@dataclass(slots=True)
class DeliveryHarness:
    """A context of the test's own on the store."""

    ctx: context.Context
    account_id: str

    async def send(self, count: int = 1, *, domain: str = DOMAIN) -> list[str]:
        """Queue messages with one recipient each; returns the addresses."""
        return await bulk_queue.fill(self.ctx, self.account_id, domain, count=count)

    async def rows(self) -> list[queue_views.QueuedRecipient]:
        """The queue as it stands."""
        async with self.ctx.store.scanning() as tx:
            return await queue_views.page(tx, queue_views.Filter(), state=None, limit=1_000_000)

    async def states(self) -> Counter[str]:
        """How many rows of the queue are ready, waiting or being sent."""
        async with self.ctx.store.scanning() as tx:
            found = await queue_views.counts(tx, queue_views.Filter())
        return Counter({state: count.recipients for state, count in found.items()})

    async def statuses(self) -> Counter[str]:
        """How many recipients of the account have each status."""
        return Counter(dict(await self._ask("statuses")))

    async def attempts(self) -> list[tuple[str, str, str, bool]]:
        """The account's log of attempts: address, verdict, reply or trouble, and whether it was in doubt; in order."""
        rows = await self._ask("attempts")
        return [(email, verdict, response, bool(in_doubt)) for email, verdict, response, in_doubt in rows]

    async def attempt_counts(self) -> dict[str, int]:
        """How many attempts were counted for each address."""
        return dict(await self._ask("attempt_counts"))

    async def audit(self) -> None:
        """The store is consistent."""
        assert (await operator_jobs.check_consistency(self.ctx)).findings == []

    async def _ask(self, name: str) -> list[Any]:
        # A store for accidents stands before the real one.
        store = getattr(self.ctx.store, "real", self.ctx.store)
        samples.teach(store, **{name: QUESTIONS[name].replace("$1", "?1" if store.dialect == "sqlite" else "$1")})
        async with self.ctx.store.scanning() as tx:
            return await tx.fetch(f"test.{name}", self.account_id)

    async def end_leases(self) -> None:
        """Let time pass for the queue: leases are over, and waiting rows due."""
        async with self.ctx.store.transaction() as tx:
            await tx.run_script("UPDATE queue SET due_at = 0 WHERE ready = 0")
        self.ctx.mail_wakeup.set()

    async def lost_leases(self) -> list[int]:
        """End leases and promote, as the next worker does first; returns how often each row's worker was lost."""
        await self.end_leases()
        async with self.ctx.store.transaction() as tx:
            await queue.promote(tx, now=self.ctx.clock(), limit=1_000_000)
        return [row.lost_leases for row in await self.rows()]

    async def held(self, count: int) -> None:
        """Until so many rows are under a lease."""

        async def is_so() -> bool:
            return (await self.states())["sending"] >= count

        await service_process.until(is_so)

    async def finished(self) -> None:
        """Until the queue is empty."""

        async def is_so() -> bool:
            return not await self.rows()

        await service_process.until(is_so)

    async def deliver_all(self) -> list[Any]:
        """Run an engine until the queue is empty; returns its log."""
        async with engine_harness.running(self.ctx) as (_, log):
            await self.finished()
        return log

    async def prove(
        self, addresses: Sequence[str], sink: sinks.Sink, *, doubts: Mapping[str, int] | None = None
    ) -> None:
        """All were delivered and nobody is queued; each got one copy, and one more for each doubt at the most."""
        assert await self.statuses() == {"delivered": len(addresses)}
        assert await self.rows() == []
        await self.audit()
        copies = Counter(sink.recipients)
        assert copies.keys() == set(addresses)
        assert not {address for address, count in copies.items() if count > 1 + (doubts or {}).get(address, 0)}


@contextlib.asynccontextmanager
async def open_harness(
    url: str,
    tables: Mapping[str, Mapping[str, object]],
    *,
    clock: Callable[[], int] = context.system_clock,
) -> AsyncIterator[DeliveryHarness]:
    """The test's own context on the store, with an account that may send."""
    async with open_context(url, tables, clock=clock) as ctx:
        yield DeliveryHarness(ctx, await bulk_queue.new_account(ctx, "Shop"))


@contextlib.asynccontextmanager
async def open_context(
    url: str,
    tables: Mapping[str, Mapping[str, object]],
    *,
    clock: Callable[[], int] = context.system_clock,
) -> AsyncIterator[context.Context]:
    """One more context on the store, as another process would have it."""
    overrides: dict[str, Mapping[str, object]] = {
        "database": {"url": url},
        "security": {"installation_key": SECRET_KEY},
        "warmup": {"enabled": False},
        **tables,
    }
    async with composition.open_context(config.load(environment={}, overrides=overrides), clock=clock) as ctx:
        yield ctx


def events(service: service_process.Service, name: str) -> list[dict[str, Any]]:
    """Lines of a process's log with this event."""
    lines = service.log.read_bytes().splitlines()
    return [line for line in map(json.loads, lines) if line["event"] == name]


@contextlib.asynccontextmanager
async def store_locked(harness: DeliveryHarness) -> AsyncIterator[None]:
    """While the block runs nobody else can record a result: on SQLite the file is locked, else the account."""
    async with harness.ctx.store.transaction() as tx:
        await accounts.lock(tx, {harness.account_id})
        yield
