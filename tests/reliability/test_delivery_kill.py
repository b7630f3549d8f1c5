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

from tests import dns_server, mailing
from tests.delivery import engines
from tests.reliability import delivering, profile, serving, sinks
from tests.reliability.sinks import Point

SQLITE = pytest.mark.parametrize("url", ["sqlite"], indirect=True)
# More than the buffers between two processes hold, so that a sender has to wait in the middle of it.
LARGE_TEXT = f"{'x' * 70}\n" * 100_000
KILLS = 3
# A record takes some milliseconds: the kill comes anywhere in several of them.
MOMENT_SECONDS = 0.01


class Scene(NamedTuple):
    """A process to be killed, and who looks at what is left."""

    service: serving.Service
    post: delivering.Post


@contextlib.asynccontextmanager
async def scene(folder: Path, url: str, sink: sinks.Sink, **delivery: object) -> AsyncIterator[Scene]:
    """A process that delivers to the sink."""
    tables = delivering.sections(sink, **delivery)
    async with (
        delivering.post_office(url, tables) as post,
        delivering.process(folder / "process", url, tables) as service,
    ):
        await service.start()
        yield Scene(service, post)


def tried_before(log: list[Any]) -> int:
    return sum(entry["event"] == "tried_before_without_result" for entry in log)


async def test_a_kill_before_the_claim_leaves_ready_rows(url: str, tmp_path: Path) -> None:
    zones = engines.zones_of({"mx.example.net": "127.0.0.1"})
    async with (
        sinks.running() as sink,
        dns_server.running(zones) as dns,
        scene(tmp_path, url, sink, smarthost="", resolvers=[dns.address]) as (service, post),
    ):
        with dns.holding():
            addresses = await post.send(3)

            async def is_asked() -> bool:
                return bool(dns.questions)

            await serving.until(is_asked)
            await service.kill()
        assert await post.states() == {"ready": 3}
        assert tried_before(await post.deliver_all()) == 0
        await post.prove(addresses, sink)


@SQLITE
async def test_a_kill_before_and_during_the_connection_costs_no_second_copy(url: str, tmp_path: Path) -> None:
    async with sinks.running() as sink, scene(tmp_path, url, sink, pool_connections=1) as (service, post):
        sink.hold(Point.BANNER)
        addresses = await post.send(3)
        # One is being connected, and the others are claimed and wait for its connection.
        await sink.waiting(Point.BANNER)
        await post.held(3)
        await service.kill()
        sink.release(Point.BANNER)
        assert await post.attempts() == []
        assert await post.lost_leases() == [1, 1, 1]
        assert tried_before(await post.deliver_all()) == 3
        await post.prove(addresses, sink)


async def test_a_kill_before_the_final_dot_costs_no_second_copy(url: str, tmp_path: Path) -> None:
    async with sinks.running() as sink, scene(tmp_path, url, sink) as (service, post):
        sink.hold(Point.DATA)
        addresses = await post.send()
        await sink.waiting(Point.DATA)
        await service.kill()
        sink.release(Point.DATA)
        assert await post.attempts() == []
        assert await post.lost_leases() == [1]
        assert tried_before(await post.deliver_all()) == 1
        await post.prove(addresses, sink)


@SQLITE
async def test_a_kill_in_the_middle_of_the_content_costs_no_second_copy(url: str, tmp_path: Path) -> None:
    async with sinks.running(small_buffers=True) as sink, scene(tmp_path, url, sink) as (service, post):
        sink.hold(Point.RECEIVING)
        await mailing.accept(post.ctx, post.account_id, to=("ada@example.net",), text=LARGE_TEXT)
        await sink.waiting(Point.RECEIVING)
        await service.kill()
        sink.release(Point.RECEIVING)
        assert await post.lost_leases() == [1]
        assert tried_before(await post.deliver_all()) == 1
        await post.prove(["ada@example.net"], sink)
        assert sink.seen[Point.RECEIVING] == 2


@SQLITE
async def test_a_kill_after_the_final_dot_is_in_doubt_and_sent_again(url: str, tmp_path: Path) -> None:
    async with sinks.running() as sink, scene(tmp_path, url, sink) as (service, post):
        sink.hold(Point.CONTENT)
        addresses = await post.send()
        await sink.waiting(Point.CONTENT)
        await service.kill()
        sink.release(Point.CONTENT)
        await sink.got(1)
        assert await post.attempts() == []
        assert await post.lost_leases() == [1]
        assert tried_before(await post.deliver_all()) == 1
        await post.prove(addresses, sink, doubts=dict.fromkeys(addresses, 1))
        assert len(sink.taken) == 2


async def test_a_kill_before_the_record_is_in_doubt_and_sent_again(url: str, tmp_path: Path) -> None:
    async with sinks.running() as sink, scene(tmp_path, url, sink) as (service, post):
        sink.hold(Point.CONTENT)
        addresses = await post.send()
        await sink.waiting(Point.CONTENT)
        async with delivering.store_taken(post):
            sink.release(Point.CONTENT)
            # Whoever takes leave has read the answer; its result waits for the store.
            await sink.passed(Point.QUIT)
            await service.kill()
        assert await post.attempts() == []
        assert await post.lost_leases() == [1]
        assert tried_before(await post.deliver_all()) == 1
        await post.prove(addresses, sink, doubts=dict.fromkeys(addresses, 1))
        assert len(sink.taken) == 2


@SQLITE
@pytest.mark.parametrize("seed", range(1, profile.SCALE + 1))
async def test_kills_anywhere_around_the_record_double_only_what_was_held(url: str, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    async with sinks.running() as sink, scene(tmp_path, url, sink) as (service, post):
        addresses: list[str] = []
        doubts: Counter[str] = Counter()
        for number in range(KILLS):
            addresses += await post.send(60, domain=f"{number}.example.net")
            await sink.got(len(sink.taken) + chance.randrange(5, 50))
            await asyncio.sleep(chance.uniform(0, MOMENT_SECONDS))
            await service.kill()
            doubts.update(row.email for row in await post.rows() if row.state == "sending")
            await post.end_leases()
            if number < KILLS - 1:
                await service.start()
        await post.deliver_all()
        await post.prove(addresses, sink, doubts=doubts)
