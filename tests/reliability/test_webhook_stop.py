"""SIGTERM during webhook attempts: what can be finished is, the rest returns to the queue, and the exit code is 0."""

import itertools
from pathlib import Path

from postroad.webhooks import engine
from tests.reliability import webhook_processes
from tests.webhook_server import OK, ReceivedRequest

# The first ones give the endpoint all the places that there are for it.
FIRST = 60
IN_FLIGHT = 20
UNTOUCHED = 30
HANGING = IN_FLIGHT // 2


async def warmed_up(scene: webhook_processes.WebhookScenario) -> list[str]:
    """Some were delivered, so that many go at once."""
    written = await scene.open_harness.write(FIRST)
    await scene.open_harness.finished()
    return written


async def test_a_stop_lets_attempts_under_way_finish_and_begins_no_more(url: str, tmp_path: Path) -> None:
    async with webhook_processes.running_scenario(tmp_path, url) as scene:
        desk, receiver, service = scene.open_harness, scene.receiver, scene.service
        written = await warmed_up(scene)
        receiver.answer = gate = webhook_processes.Gate()
        written += await desk.write(IN_FLIGHT + UNTOUCHED)
        await webhook_processes.got(receiver, FIRST + IN_FLIGHT)
        service.process.terminate()
        await webhook_processes.logged(service, "stopping")
        gate.open()
        assert await service.ended() == 0
        assert service.errors() == []
        assert len(receiver.requests) == FIRST + IN_FLIGHT
        assert await desk.statuses_and_attempts() == {
            ("succeeded", 1, False): FIRST + IN_FLIGHT,
            ("ready", 0, False): UNTOUCHED,
        }

        await service.start()
        await desk.finished()
        assert await service.stop() == 0
        await desk.prove(written, receiver)


async def test_a_stop_does_not_wait_for_endpoints_that_hang_and_they_are_tried_later(url: str, tmp_path: Path) -> None:
    numbers = itertools.count()

    def answer_every_other(_: ReceivedRequest) -> bytes | None:
        return OK if next(numbers) % 2 else None

    async with webhook_processes.running_scenario(tmp_path, url, grace_seconds=1) as scene:
        desk, receiver, service = scene.open_harness, scene.receiver, scene.service
        written = await warmed_up(scene)
        receiver.answer = answer_every_other
        written += await desk.write(IN_FLIGHT)
        await webhook_processes.got(receiver, FIRST + IN_FLIGHT)
        assert await service.stop() == 0
        assert service.errors() == []
        (cut_off,) = webhook_processes.logged_events(service, "webhook_grace_period_exceeded")
        assert cut_off["attempts"] == HANGING
        assert await desk.statuses_and_attempts() == {
            ("succeeded", 1, False): FIRST + IN_FLIGHT - HANGING,
            ("waiting", 1, False): HANGING,
        }
        failed = [attempt.error for log in await desk.attempts() for attempt in log if attempt.error]
        assert failed == [engine.STOPPED] * HANGING

        receiver.answer = OK
        await service.start()
        await desk.finished()
        assert await service.stop() == 0
        await desk.prove(written, receiver)
        assert webhook_processes.copies(receiver) == {1: len(written) - HANGING, 2: HANGING}
