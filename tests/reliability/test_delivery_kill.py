"""kill -9 in every phase of a delivery: nothing is lost, and only what was in doubt can arrive twice.

A sink holds the session of a real process at the chosen point, and the process dies there. Its leases end, another
worker takes over, and every recipient is delivered. Until the final dot was sent nobody gets two copies. After it, and
until the result is on disk, a second copy is the price for losing none, and the log says that it was tried before.
"""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import accepted_mail, dns_server
from tests.delivery import engine_harness
from tests.reliability import delivery_harness, profile, service_process, sinks
from tests.reliability.sinks import Point

SQLITE = pytest.mark.parametrize("url", ["sqlite"], indirect=True)
# More than the buffers between two processes hold, so that a sender has to wait in the middle of it.
LARGE_TEXT = f"{'x' * 70}\n" * 100_000
KILLS = 3
# A record takes some milliseconds: the kill comes anywhere in several of them.
MOMENT_SECONDS = 0.01


class DeliveryScenario(NamedTuple):
    """A process to be killed, and who looks at what is left."""

    service: service_process.Service
    harness: delivery_harness.DeliveryHarness


@contextlib.asynccontextmanager
async def running_scenario(
    folder: Path, url: str, sink: sinks.Sink, **delivery: Any
) -> AsyncIterator[DeliveryScenario]:
    """A process that delivers to the sink."""
    tables = delivery_harness.sections(sink, **delivery)
    async with (
        delivery_harness.open_harness(url, tables) as harness,
        delivery_harness.process(folder / "process", url, tables) as service,
    ):
        await service.start()
        yield DeliveryScenario(service, harness)


def tried_before(log: list[Any]) -> int:
    return sum(entry["event"] == "previous_attempt_unrecorded" for entry in log)


async def test_a_kill_before_the_claim_leaves_ready_rows(url: str, tmp_path: Path) -> None:
    zones = engine_harness.zones_of({"mx.example.net": "127.0.0.1"})
    async with (
        sinks.running() as sink,
        dns_server.running(zones) as dns,
        running_scenario(tmp_path, url, sink, is_direct=True, resolvers=[dns.address]) as (service, harness),
    ):
        with dns.holding():
            addresses = await harness.send(3)

            async def is_asked() -> bool:
                return bool(dns.questions)

            await service_process.until(is_asked)
            await service.kill()
        assert await harness.states() == {"ready": 3}
        assert tried_before(await harness.deliver_all()) == 0
        await harness.prove(addresses, sink)


@SQLITE
@pytest.mark.parametrize(
    "point, count, doubts",
    [(Point.BANNER, 3, 0), (Point.DATA, 1, 0), (Point.CONTENT, 1, 1)],
    ids=["connecting", "before the final dot", "after the final dot"],
)
async def test_a_kill_in_a_session_costs_a_second_copy_only_after_the_final_dot(
    url: str, tmp_path: Path, point: Point, count: int, doubts: int
) -> None:
    async with sinks.running() as sink, running_scenario(tmp_path, url, sink, pool_connections=1) as (service, harness):
        sink.hold(point)
        addresses = await harness.send(count)
        # Of several, one is being connected, and the others are claimed and wait for its connection.
        await sink.waiting(point)
        await harness.held(count)
        await service.kill()
        sink.release(point)
        await sink.got(doubts)
        assert await harness.attempts() == []
        assert await harness.lost_leases() == [1] * count
        assert tried_before(await harness.deliver_all()) == count
        await harness.prove(addresses, sink, doubts=dict.fromkeys(addresses, doubts))
        assert len(sink.taken) == count + doubts


@SQLITE
async def test_a_kill_in_the_middle_of_the_content_costs_no_second_copy(url: str, tmp_path: Path) -> None:
    async with sinks.running(small_buffers=True) as sink, running_scenario(tmp_path, url, sink) as (service, harness):
        sink.hold(Point.RECEIVING)
        await accepted_mail.accept(harness.ctx, harness.account_id, to=("ada@example.net",), text=LARGE_TEXT)
        await sink.waiting(Point.RECEIVING)
        await service.kill()
        sink.release(Point.RECEIVING)
        assert await harness.lost_leases() == [1]
        assert tried_before(await harness.deliver_all()) == 1
        await harness.prove(["ada@example.net"], sink)
        assert sink.seen[Point.RECEIVING] == 2


async def test_a_kill_before_the_record_is_in_doubt_and_sent_again(url: str, tmp_path: Path) -> None:
    async with sinks.running() as sink, running_scenario(tmp_path, url, sink) as (service, harness):
        sink.hold(Point.CONTENT)
        addresses = await harness.send()
        await sink.waiting(Point.CONTENT)
        async with delivery_harness.store_locked(harness):
            sink.release(Point.CONTENT)
            # Whoever takes leave has read the answer; its result waits for the store.
            await sink.passed(Point.QUIT)
            await service.kill()
        assert await harness.attempts() == []
        assert await harness.lost_leases() == [1]
        assert tried_before(await harness.deliver_all()) == 1
        await harness.prove(addresses, sink, doubts=dict.fromkeys(addresses, 1))
        assert len(sink.taken) == 2


@SQLITE
@pytest.mark.parametrize("seed", range(1, profile.SCALE + 1))
async def test_kills_anywhere_around_the_record_double_only_what_was_held(url: str, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    async with sinks.running() as sink, running_scenario(tmp_path, url, sink) as (service, harness):
        addresses: list[str] = []
        doubts: Counter[str] = Counter()
        for number in range(KILLS):
            addresses += await harness.send(60, domain=f"{number}.example.net")
            await sink.got(len(sink.taken) + chance.randrange(5, 50))
            await asyncio.sleep(chance.uniform(0, MOMENT_SECONDS))
            await service.kill()
            doubts.update(row.email for row in await harness.rows() if row.state == "sending")
            await harness.end_leases()
            if number < KILLS - 1:
                await service.start()
        await harness.deliver_all()
        await harness.prove(addresses, sink, doubts=doubts)
