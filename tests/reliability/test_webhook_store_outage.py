"""The store goes away while endpoints answer: results wait for it, and nothing that was answered is sent twice."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from postroad import errors
from postroad.storage.engine import group_commit, sqlite_connections
from postroad.webhooks import engine
from tests import contexts, webhook_server
from tests.postgres_server import PostgresServer
from tests.reliability import delivery_harness, service_process, webhook_processes
from tests.webhooks import webhook_harness

# The first ones give the endpoint all the places that there are for it.
FIRST = 60
IN_FLIGHT = 20
LATER = 60
# The lease is longer than the store is away.
LONG = webhook_processes.sections(lease_seconds=600)
SHORT = webhook_processes.sections()
RetryingCommits = group_commit.RetryingCommits[engine.CompletedAttempt, bool]
SQLITE = pytest.mark.parametrize("url", ["sqlite"], indirect=True)


async def under_way(
    desk: webhook_processes.EndpointHarness, receiver: webhook_server.WebhookServer
) -> tuple[list[str], webhook_processes.Gate]:
    """Some were delivered, and some are on their way behind a gate."""
    written = await desk.write(FIRST)
    await desk.finished()
    receiver.answer = gate = webhook_processes.Gate()
    written += await desk.write(LATER)
    await webhook_processes.got(receiver, FIRST + IN_FLIGHT)
    return written, gate


async def was_sent_once(
    desk: webhook_processes.EndpointHarness, receiver: webhook_server.WebhookServer, written: list[str]
) -> None:
    await desk.finished()
    await desk.prove(written, receiver)
    assert await desk.statuses_and_attempts() == {("succeeded", 1, False): len(written)}


async def all_wait(service: service_process.Service) -> None:
    """Until the process has said that all results wait."""

    async def is_so() -> bool:
        deferred = webhook_processes.logged_events(service, "webhook_result_recording_deferred")
        return any(line["results"] == IN_FLIGHT for line in deferred)

    await service_process.until(is_so)


async def test_a_stop_does_not_wait_for_a_database_server_that_is_away(tmp_path: Path) -> None:
    with PostgresServer() as server:
        url = server.create_database()
        async with (
            webhook_server.running(tls=False) as receiver,
            webhook_processes.open_harness(url, LONG, receiver.url) as desk,
            webhook_processes.process(tmp_path / "process", url, LONG) as service,
        ):
            await service.start()
            written, gate = await under_way(desk, receiver)
            await asyncio.to_thread(server.stop)
            gate.open()
            await all_wait(service)
            assert await service.stop() == 0
            assert service.errors() == []
            (abandoned,) = webhook_processes.logged_events(service, "webhook_results_abandoned")
            assert abandoned["results"] == IN_FLIGHT

            await asyncio.to_thread(server.start)
            await desk.audit()
            assert await desk.statuses_and_attempts() == {
                ("succeeded", 1, False): FIRST,
                ("waiting", 1, True): IN_FLIGHT,
                ("ready", 0, False): LATER - IN_FLIGHT,
            }
            # Their leases bring them back.
            await desk.deliver_all()
            await desk.prove(written, receiver)
            assert webhook_processes.copies(receiver) == {1: len(written) - IN_FLIGHT, 2: IN_FLIGHT}


@contextlib.asynccontextmanager
async def beside_a_writer(
    url: str, tables: dict[str, dict[str, object]], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[webhook_processes.EndpointHarness, webhook_server.WebhookServer, Any]]:
    """An engine that soon gives up waiting for the file, and the context of another writer."""
    monkeypatch.setattr(sqlite_connections, "BUSY_SECONDS", 0.1)
    async with (
        webhook_server.running(tls=False) as receiver,
        webhook_processes.open_harness(url, tables, receiver.url) as desk,
        delivery_harness.open_context(url, tables) as writer,
        webhook_harness.WebhookHarness(desk.ctx, contexts.Clock(), desk.log).delivering(),
    ):
        yield desk, receiver, writer


@pytest.fixture
def refusals(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the result of each delivery was refused; the log says only how many wait."""
    counted: Counter[str] = Counter()
    make_later = RetryingCommits._retry_later

    def count(
        self: RetryingCommits,
        offer: group_commit._PendingItem[engine.CompletedAttempt],
        trouble: errors.PostroadError,
    ) -> None:
        counted[offer.item.claimed.id] += 1
        make_later(self, offer, trouble)

    monkeypatch.setattr(group_commit.RetryingCommits, "_retry_later", count)
    return counted


async def all_were_refused(refusals: Counter[str]) -> None:
    """Until each result was refused twice: the second time is behind any claim that was under way at the first."""

    async def is_so() -> bool:
        return sum(times > 1 for times in refusals.values()) == IN_FLIGHT

    await service_process.until(is_so)


@SQLITE
async def test_a_store_that_is_away_for_longer_than_a_lease_gets_every_result_too(
    url: str, monkeypatch: pytest.MonkeyPatch, refusals: Counter[str]
) -> None:
    # The engine polls again sooner than the results are recorded, and must not find their leases expired.
    monkeypatch.setattr(engine, "ERROR_BACKOFF_SECONDS", 0.001)
    async with beside_a_writer(url, SHORT, monkeypatch) as (desk, receiver, writer):
        written, gate = await under_way(desk, receiver)
        async with webhook_processes.store_locked(writer) as tx:
            gate.open()
            await all_were_refused(refusals)
            await webhook_processes.let_time_pass(tx)
        await was_sent_once(desk, receiver, written)
