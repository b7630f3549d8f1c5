"""The store goes away while mail is on its way: results wait for it, and nothing is sent twice."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from postroad.delivery import recorder
from postroad.storage.engine import sqlite_connections
from tests.delivery import engine_harness
from tests.postgres_server import PostgresServer
from tests.reliability import delivery_harness, service_process, sinks
from tests.reliability.sinks import Point

# These let a provider queue have several connections.
FIRST = 8
IN_FLIGHT = 6
LATER = 40


async def warm_up(harness: delivery_harness.DeliveryHarness, sink: sinks.Sink) -> list[str]:
    """Some are delivered, and then some are on their way."""
    addresses = await harness.send(FIRST, domain="first.example.net")
    await harness.finished()
    sink.hold(Point.CONTENT)
    addresses += await harness.send(LATER)
    await sink.waiting(Point.CONTENT, IN_FLIGHT)
    return addresses


async def results_wait(log: list[Any]) -> None:
    """Until a result could not be recorded."""

    async def is_so() -> bool:
        return any(line["event"] == "results_recording_deferred" for line in log)

    await service_process.until(is_so)


async def test_a_stop_does_not_wait_for_a_database_server_that_is_away(tmp_path: Path) -> None:
    with PostgresServer() as server:
        url = server.create_database()
        async with sinks.running() as sink:
            tables = delivery_harness.sections(sink, lease_seconds=600)
            async with (
                delivery_harness.open_harness(url, tables) as harness,
                delivery_harness.process(tmp_path / "process", url, tables) as service,
            ):
                await service.start()
                addresses = await warm_up(harness, sink)
                await asyncio.to_thread(server.stop)
                sink.release(Point.CONTENT)

                async def is_refused() -> bool:
                    return b'"results_recording_deferred"' in service.log.read_bytes()

                await service_process.until(is_refused)
                assert await service.stop() == 0
                assert service.errors() == []
                (abandoned,) = delivery_harness.events(service, "results_abandoned")

                # The mail is there, and nobody knows: when their leases are over they are sent once more.
                await asyncio.to_thread(server.start)
                in_doubt = set(sink.recipients) - set(addresses[:FIRST])
                assert IN_FLIGHT <= len(in_doubt) <= abandoned["results"]
                assert await harness.statuses() == {"delivered": FIRST, "queued": LATER}
                await harness.end_leases()
                await harness.deliver_all()
                await harness.prove(addresses, sink, doubts=Counter(in_doubt))


async def test_a_stop_does_not_wait_for_workers_whose_results_have_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "MAX_UNRECORDED", 2)
    with PostgresServer() as server:
        url = server.create_database()
        async with (
            asyncio.timeout(service_process.TIMEOUT_SECONDS),
            sinks.running() as sink,
            delivery_harness.open_harness(url, delivery_harness.sections(sink)) as harness,
        ):
            async with engine_harness.running(harness.ctx) as (_, log):
                await warm_up(harness, sink)
                await asyncio.to_thread(server.stop)
                sink.release(Point.CONTENT)
                await results_wait(log)
            (abandoned,) = [line for line in log if line["event"] == "results_abandoned"]
            assert abandoned["results"] >= IN_FLIGHT
            # The test's own context closes with the server away as well.


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_a_file_that_another_writer_holds_gets_every_result(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_connections, "BUSY_SECONDS", 0.1)
    async with sinks.running() as sink:
        tables = delivery_harness.sections(sink)
        async with (
            delivery_harness.open_harness(url, tables) as harness,
            delivery_harness.open_context(url, tables) as writer,
            engine_harness.running(harness.ctx) as (_, log),
        ):
            addresses = await warm_up(harness, sink)
            async with delivery_harness.store_locked(delivery_harness.DeliveryHarness(writer, harness.account_id)):
                sink.release(Point.CONTENT)
                await results_wait(log)
                statuses = await harness.statuses()
                assert statuses["delivered"] == FIRST
            await harness.finished()
            await harness.prove(addresses, sink)
