"""kill -9 in every phase of a webhook attempt: no event is lost, none is sent too often, and the log records doubts.

The process dies where the endpoint, its name server or the store holds it. Its leases end, another worker takes over,
and every event arrives. What was claimed counts: nobody knows whether it arrived, and the log says just that.
"""

import asyncio
from pathlib import Path

import pytest

from postroad.webhooks import engine
from tests import dns_server, webhook_server
from tests.reliability import service_process, webhook_processes
from tests.webhook_server import OK


async def test_a_kill_between_claim_and_request_counts_an_attempt_and_sends_once(url: str, tmp_path: Path) -> None:
    name = webhook_server.NAME
    async with (
        webhook_server.running(tls=False) as receiver,
        dns_server.running({name: {"A": [receiver.host]}}) as dns,
    ):
        tables: dict[str, dict[str, object]] = {
            **webhook_processes.sections(),
            "delivery": {"resolvers": [dns.address]},
        }
        async with (
            webhook_processes.open_harness(url, tables, receiver.at(name)) as desk,
            webhook_processes.process(tmp_path / "process", url, tables) as service,
        ):
            await service.start()
            asked = len(dns.questions)
            with dns.holding():
                written = await desk.write()

                async def is_asked() -> bool:
                    return len(dns.questions) > asked

                await service_process.until(is_asked)
                await service.kill()
            assert receiver.connections == 0
            assert await desk.statuses_and_attempts() == {("waiting", 1, True): 1}
            await desk.deliver_all()
            await desk.prove(written, receiver)
            assert webhook_processes.copies(receiver) == {1: 1}
            assert await desk.statuses_and_attempts() == {("succeeded", 2, False): 1}
            assert await logged_errors(desk) == [[engine.WORKER_LOST, None]]


async def test_a_kill_before_the_answer_sends_again_with_the_same_bytes(url: str, tmp_path: Path) -> None:
    async with webhook_processes.running_scenario(tmp_path, url) as scene:
        desk, receiver = scene.open_harness, scene.receiver
        receiver.answer = webhook_processes.Gate()
        written = await desk.write()
        await webhook_processes.got(receiver, 1)
        await scene.service.kill()
        receiver.answer = OK
        await desk.deliver_all()
        await desk.prove(written, receiver)
        assert webhook_processes.copies(receiver) == {2: 1}
        assert await logged_errors(desk) == [[engine.WORKER_LOST, None]]


async def test_a_kill_between_answer_and_record_sends_again_with_the_same_bytes(url: str, tmp_path: Path) -> None:
    async with webhook_processes.running_scenario(tmp_path, url) as scene:
        desk, receiver = scene.open_harness, scene.receiver
        receiver.answer = gate = webhook_processes.Gate()
        written = await desk.write()
        await webhook_processes.got(receiver, 1)
        async with webhook_processes.store_locked(desk.ctx), asyncio.timeout(service_process.TIMEOUT_SECONDS):
            gate.open()
            # Whoever ends an idle connection has read the answer; its result waits for the store.
            await receiver.left_alone()
            await scene.service.kill()
        assert await desk.attempts() == [[]]
        await desk.deliver_all()
        await desk.prove(written, receiver)
        assert webhook_processes.copies(receiver) == {2: 1}
        assert await logged_errors(desk) == [[engine.WORKER_LOST, None]]


async def test_a_kill_after_the_record_sends_nothing_twice(url: str, tmp_path: Path) -> None:
    async with webhook_processes.running_scenario(tmp_path, url) as scene:
        desk, receiver = scene.open_harness, scene.receiver
        written = await desk.write(3)
        await desk.finished()
        await scene.service.kill()
        written += await desk.write(3)
        await desk.deliver_all()
        await desk.prove(written, receiver)
        assert webhook_processes.copies(receiver) == {1: 6}
        assert await desk.statuses_and_attempts() == {("succeeded", 1, False): 6}


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_a_death_in_the_middle_of_every_attempt_leaves_none_for_later(url: str, tmp_path: Path) -> None:
    attempts = 3
    async with webhook_processes.running_scenario(tmp_path, url, retry_seconds=[1] * (attempts - 1)) as scene:
        desk, receiver, service = scene.open_harness, scene.receiver, scene.service
        receiver.answer = webhook_processes.Gate()
        await desk.write()
        for number in range(1, attempts + 1):
            await webhook_processes.got(receiver, number)
            await service.kill()
            await desk.end_leases()
            await service.start()
        await desk.finished()
        assert await service.stop() == 0
        assert len(receiver.requests) == attempts
        assert await desk.statuses_and_attempts() == {("failed", attempts, False): 1}
        assert await logged_errors(desk) == [[engine.WORKER_LOST] * attempts]
        await desk.audit()


async def logged_errors(desk: webhook_processes.EndpointHarness) -> list[list[str | None]]:
    """What the log says of each attempt that has no status."""
    return [[attempt.error for attempt in log] for log in await desk.attempts()]
