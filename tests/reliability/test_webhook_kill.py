"""kill -9 in every phase of telling a receiver: no event is lost, none comes too often, and the log owns up to doubts.

The process dies where the receiver, its name server or the store holds it. Its leases end, another worker takes over,
and every event arrives. What was claimed counts: nobody knows whether it arrived, and the log says just that.
"""

import asyncio
import random
from pathlib import Path

import pytest

from postroad.webhooks import dispatching
from tests import dns_server, webhook_receivers
from tests.reliability import profile, serving, telling
from tests.webhook_receivers import OK

KILLS = 3
PILE = 120
# An attempt takes some milliseconds: the kill comes anywhere in several of them.
MOMENT_SECONDS = 0.02


@pytest.mark.parametrize("seed", range(1, profile.SCALE + 1))
async def test_kills_at_any_moment_lose_no_event_and_make_none_too_many(url: str, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    async with telling.scene(tmp_path, url) as scene:
        desk, receiver, service = scene.desk, scene.receiver, scene.service
        receiver.answer = telling.moody(chance)
        written: list[str] = []
        for _ in range(KILLS):
            written += await desk.write(PILE)
            await telling.got(receiver, len(receiver.requests) + chance.randrange(10, PILE - 10))
            await asyncio.sleep(chance.uniform(0, MOMENT_SECONDS))
            await service.kill()
            # A death leaves the books in order, and what the dead held is counted already.
            await desk.audit()
            await desk.end_leases()
            await service.start()
        await desk.finished()
        assert await service.stop() == 0
        assert service.errors() == []
        await desk.prove(written, receiver)
        code, printed = await service.command("audit")
        assert (code, printed["findings"]) == (0, [])


async def test_a_kill_between_claim_and_request_counts_an_attempt_and_tells_once(url: str, tmp_path: Path) -> None:
    name = webhook_receivers.NAME
    async with (
        webhook_receivers.receiving(tls=False) as receiver,
        dns_server.running({name: {"A": [receiver.host]}}) as dns,
    ):
        tables: dict[str, dict[str, object]] = {**telling.sections(), "delivery": {"resolvers": [dns.address]}}
        async with (
            telling.desk(url, tables, receiver.at(name)) as desk,
            telling.process(tmp_path / "process", url, tables) as service,
        ):
            await service.start()
            asked = len(dns.questions)
            with dns.holding():
                written = await desk.write()

                async def is_asked() -> bool:
                    return len(dns.questions) > asked

                await serving.until(is_asked)
                await service.kill()
            assert receiver.connections == 0
            assert await desk.standings() == {("waiting", 1, True): 1}
            await desk.tell_all()
            await desk.prove(written, receiver)
            assert telling.copies(receiver) == {1: 1}
            assert await desk.standings() == {("succeeded", 2, False): 1}
            assert await logged_errors(desk) == [[dispatching.LOST, None]]


async def test_a_kill_before_the_answer_tells_again_with_the_same_bytes(url: str, tmp_path: Path) -> None:
    async with telling.scene(tmp_path, url) as scene:
        desk, receiver = scene.desk, scene.receiver
        receiver.answer = telling.Gate()
        written = await desk.write()
        await telling.got(receiver, 1)
        await scene.service.kill()
        receiver.answer = OK
        await desk.tell_all()
        await desk.prove(written, receiver)
        assert telling.copies(receiver) == {2: 1}
        assert await logged_errors(desk) == [[dispatching.LOST, None]]


async def test_a_kill_between_answer_and_record_tells_again_with_the_same_bytes(url: str, tmp_path: Path) -> None:
    async with telling.scene(tmp_path, url) as scene:
        desk, receiver = scene.desk, scene.receiver
        receiver.answer = gate = telling.Gate()
        written = await desk.write()
        await telling.got(receiver, 1)
        async with telling.store_taken(desk.ctx), asyncio.timeout(serving.PATIENCE_SECONDS):
            gate.open()
            # Whoever ends an idle connection has read the answer; its result waits for the store.
            await receiver.left_alone()
            await scene.service.kill()
        assert await desk.attempts() == [[]]
        await desk.tell_all()
        await desk.prove(written, receiver)
        assert telling.copies(receiver) == {2: 1}
        assert await logged_errors(desk) == [[dispatching.LOST, None]]


async def test_a_kill_after_the_record_tells_nothing_twice(url: str, tmp_path: Path) -> None:
    async with telling.scene(tmp_path, url) as scene:
        desk, receiver = scene.desk, scene.receiver
        written = await desk.write(3)
        await desk.finished()
        await scene.service.kill()
        written += await desk.write(3)
        await desk.tell_all()
        await desk.prove(written, receiver)
        assert telling.copies(receiver) == {1: 6}
        assert await desk.standings() == {("succeeded", 1, False): 6}


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_a_death_in_the_middle_of_every_attempt_leaves_none_for_later(url: str, tmp_path: Path) -> None:
    attempts = 3
    async with telling.scene(tmp_path, url, retry_seconds=[1] * (attempts - 1)) as scene:
        desk, receiver, service = scene.desk, scene.receiver, scene.service
        receiver.answer = telling.Gate()
        await desk.write()
        for number in range(1, attempts + 1):
            await telling.got(receiver, number)
            await service.kill()
            await desk.end_leases()
            await service.start()
        await desk.finished()
        assert await service.stop() == 0
        assert len(receiver.requests) == attempts
        assert await desk.standings() == {("failed", attempts, False): 1}
        assert await logged_errors(desk) == [[dispatching.LOST] * attempts]
        await desk.audit()


async def logged_errors(desk: telling.Desk) -> list[list[str | None]]:
    """What the log says of each attempt that has no status."""
    return [[attempt.error for attempt in log] for log in await desk.attempts()]
