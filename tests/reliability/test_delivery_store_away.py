"""The store goes away while mail is on its way: results wait for it, and nothing is sent twice."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from postroad.delivery import recording
from postroad.storage import sqlite_connection
from tests.delivery import engines
from tests.postgres_server import PostgresServer
from tests.reliability import delivering, serving, sinks
from tests.reliability.sinks import Point

# These let a pool have several connections.
FIRST = 8
IN_FLIGHT = 6
LATER = 40


async def warm_up(post: delivering.Post, sink: sinks.Sink) -> list[str]:
    """Some are delivered, and then some are on their way."""
    addresses = await post.send(FIRST, domain="first.example.net")
    await post.finished()
    sink.hold(Point.CONTENT)
    addresses += await post.send(LATER)
    await sink.waiting(Point.CONTENT, IN_FLIGHT)
    return addresses


async def results_wait(log: list[Any]) -> None:
    """Until a result could not be recorded."""

    async def is_so() -> bool:
        return any(line["event"] == "results_not_recorded_yet" for line in log)

    await serving.until(is_so)


async def test_a_database_server_that_stops_and_starts_gets_every_result() -> None:
    with PostgresServer() as server:
        url = server.create_database()
        async with sinks.running() as sink:
            tables = delivering.sections(sink)
            async with delivering.post_office(url, tables) as post, engines.running(post.ctx) as (_, log):
                addresses = await warm_up(post, sink)
                await asyncio.to_thread(server.stop)
                sink.release(Point.CONTENT)
                await results_wait(log)
                await asyncio.to_thread(server.start)
                await post.finished()
                await post.prove(addresses, sink)


async def test_a_stop_does_not_wait_for_a_database_server_that_is_away(tmp_path: Path) -> None:
    with PostgresServer() as server:
        url = server.create_database()
        async with sinks.running() as sink:
            tables = delivering.sections(sink, lease_seconds=600)
            async with (
                delivering.post_office(url, tables) as post,
                delivering.process(tmp_path / "process", url, tables) as service,
            ):
                await service.start()
                addresses = await warm_up(post, sink)
                await asyncio.to_thread(server.stop)
                sink.release(Point.CONTENT)

                async def is_refused() -> bool:
                    return b'"results_not_recorded_yet"' in service.log.read_bytes()

                await serving.until(is_refused)
                assert await service.stop() == 0
                assert service.errors() == []
                (given_up,) = delivering.events(service, "results_given_up")

                # The mail is there, and nobody knows: when their leases are over they are sent once more.
                await asyncio.to_thread(server.start)
                in_doubt = set(sink.recipients) - set(addresses[:FIRST])
                assert IN_FLIGHT <= len(in_doubt) <= given_up["results"]
                assert await post.statuses() == {"delivered": FIRST, "queued": LATER}
                await post.end_leases()
                await post.deliver_all()
                await post.prove(addresses, sink, doubts=Counter(in_doubt))


async def test_a_stop_does_not_wait_for_workers_whose_results_have_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MOST_UNRECORDED", 2)
    with PostgresServer() as server:
        url = server.create_database()
        async with (
            asyncio.timeout(serving.PATIENCE_SECONDS),
            sinks.running() as sink,
            delivering.post_office(url, delivering.sections(sink)) as post,
        ):
            async with engines.running(post.ctx) as (_, log):
                await warm_up(post, sink)
                await asyncio.to_thread(server.stop)
                sink.release(Point.CONTENT)
                await results_wait(log)
            (given_up,) = [line for line in log if line["event"] == "results_given_up"]
            assert given_up["results"] >= IN_FLIGHT
            # The test's own context closes with the server away as well.


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_a_file_that_another_writer_holds_gets_every_result(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_connection, "BUSY_SECONDS", 0.1)
    async with sinks.running() as sink:
        tables = delivering.sections(sink)
        async with (
            delivering.post_office(url, tables) as post,
            delivering.open_context(url, tables) as writer,
            engines.running(post.ctx) as (_, log),
        ):
            addresses = await warm_up(post, sink)
            async with delivering.store_taken(delivering.Post(writer, post.account_id)):
                sink.release(Point.CONTENT)
                await results_wait(log)
                statuses = await post.statuses()
                assert statuses["delivered"] == FIRST
            await post.finished()
            await post.prove(addresses, sink)
