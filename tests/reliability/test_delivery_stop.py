"""SIGTERM while a hundred messages are on their way: what can be finished is, and the rest waits for the next start."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from postroad.delivery import attempter
from postroad.storage.engine import store
from postroad.storage.mail import suppressions
from tests.delivery import engine_harness
from tests.reliability import delivery_harness, service_process, sinks
from tests.reliability.sinks import Point

IN_FLIGHT = 100
CONNECTIONS = IN_FLIGHT + 1  # an account that is alone leaves one for the next
# Each success opens one more connection, from two on.
BEFORE = CONNECTIONS
UNTOUCHED = 60
ANSWERED = 50


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_a_stop_with_a_hundred_messages_in_flight_loses_nothing(url: str, tmp_path: Path) -> None:
    async with sinks.running() as sink:
        tables = delivery_harness.sections(sink, pool_connections=CONNECTIONS, retry_seconds=[1, 1])
        async with (
            delivery_harness.open_harness(url, tables) as harness,
            delivery_harness.process(tmp_path / "process", url, tables) as service,
        ):
            await service.start()
            addresses = await harness.send(BEFORE, domain="before.example.net")
            await sink.got(BEFORE)
            await harness.finished()
            sink.hold(Point.CONTENT)
            addresses += await harness.send(IN_FLIGHT + UNTOUCHED)
            await sink.waiting(Point.CONTENT, IN_FLIGHT)
            held_back = set(addresses[BEFORE + ANSWERED :])
            sink.answer = lambda recipients: "" if held_back.intersection(recipients) else sinks.ACCEPTED
            service.process.terminate()

            async def is_stopping() -> bool:
                return bool(delivery_harness.events(service, "stopping"))

            # The sink answers half of them after the signal, and the others not at all.
            await service_process.until(is_stopping)
            sink.release(Point.CONTENT)
            assert await service.ended() == 0
            assert service.errors() == []

            # Those without an answer wait for their next attempt; those that were not begun can be taken at once.
            statuses, rows = await harness.statuses(), await harness.rows()
            assert statuses["delivered"] == BEFORE + ANSWERED
            assert statuses["deferred"] >= IN_FLIGHT - ANSWERED
            assert statuses["queued"] > 0
            assert await harness.states() == {"waiting": statuses["deferred"], "ready": statuses["queued"]}
            assert {(row.state, row.attempt_count) for row in rows} == {("waiting", 1), ("ready", 0)}
            assert {(row.worker, row.lost_leases) for row in rows} == {(None, 0)}
            in_doubt = [email for email, _, _, is_in_doubt in await harness.attempts() if is_in_doubt]
            assert sorted(in_doubt) == sorted(row.email for row in rows if row.state == "waiting")

            sink.answer = lambda _recipients: sinks.ACCEPTED
            await service.start()
            await harness.end_leases()
            await harness.finished()
            assert await service.stop() == 0
            assert delivery_harness.events(service, "previous_attempt_unrecorded") == []
            await harness.prove(addresses, sink, doubts=Counter(in_doubt))


async def test_a_stop_does_not_wait_for_hosts_that_do_not_greet(url: str) -> None:
    async with sinks.running() as sink:
        tables = delivery_harness.sections(sink, grace_seconds=1)
        async with delivery_harness.open_harness(url, tables) as harness:
            sink.hold(Point.BANNER)
            async with (
                asyncio.timeout(attempter.TIMEOUTS.reply / 2),
                engine_harness.running(harness.ctx),
            ):
                await harness.send()
                await sink.waiting(Point.BANNER)
            (row,) = await harness.rows()
            assert (row.state, row.attempt_count, row.worker, row.lost_leases) == ("ready", 0, None, 0)
            assert await harness.attempts() == []


async def test_a_stop_between_claim_and_sending_hands_back_what_was_claimed(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking, go_on = asyncio.Event(), asyncio.Event()
    find = suppressions.find

    async def find_later(
        tx: store.Transaction, addresses: Sequence[tuple[str, str]]
    ) -> dict[tuple[str, str], suppressions.Suppression]:
        looking.set()
        await go_on.wait()
        return await find(tx, addresses)

    async def open_later() -> None:
        # The engine notices the stop in a few turns of the loop.
        for _ in range(20):
            await asyncio.sleep(0)
        go_on.set()

    monkeypatch.setattr(suppressions, "find", find_later)
    async with sinks.running() as sink:
        tables = delivery_harness.sections(sink)
        async with delivery_harness.open_harness(url, tables) as harness:
            async with engine_harness.running(harness.ctx):
                await harness.send(3)
                await looking.wait()
                later = asyncio.create_task(open_later())
            await later
            # Whoever was begun is finished, and the others can be taken by anybody.
            rows = await harness.rows()
            assert await harness.statuses() == Counter(queued=len(rows), delivered=len(sink.taken))
            assert len(rows) + len(sink.taken) == 3
            assert {(row.state, row.worker) for row in rows} <= {("ready", None)}
