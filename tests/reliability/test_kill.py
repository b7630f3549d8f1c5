"""kill -9 at any moment, under load: what was acknowledged is stored exactly once, over HTTP and over SMTP.

Whoever has a key repeats until somebody answers, as real callers do; in the end every key has made one message, and is
answered alike again. SMTP clients without one never repeat: what they were not answered is there once or not at all.
"""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sized
from pathlib import Path

import pytest

from tests import raw_http
from tests.reliability import profile, service_process, submission_service

CALLERS = 6
# Of these over SMTP, so many have a key.
KEYED = 4
# Enough for any run; a caller that would send more has missed the end of the test.
MAX_SENDS = 100_000
KILLS = {"sqlite": 3, "postgres": 2}
# Between two kills at least this many requests are answered.
ANSWERS = range(4, 30)
# A request takes some milliseconds: the kill comes anywhere in several of them.
MOMENT_SECONDS = 0.02

SEEDS = pytest.mark.parametrize("seed", range(1, profile.SCALE + 1))


class SteadyLoad:
    """Callers at work, each with one message after the other; `answered` grows with every answer."""

    def __init__(self, send: Callable[[int, int], Awaitable[object]], answered: Sized, chance: random.Random) -> None:
        self._send = send
        self._answered = answered
        self._chance = chance
        self._is_over = asyncio.Event()
        self._tasks = [asyncio.create_task(self._work(number)) for number in range(CALLERS)]

    async def _work(self, number: int) -> None:
        for count in itertools.count():
            assert count < MAX_SENDS
            await self._send(number, count)
            if self._is_over.is_set():
                return

    async def survive_kills(self, service: service_process.Service) -> None:
        """Kill the service again and again, each time after some more answers and a moment that nobody can foretell."""
        for _ in range(KILLS[service.url.partition(":")[0].removesuffix("ql")]):
            await self._some_are_answered()
            await service.kill()
            await service.start()
        await self._some_are_answered()
        self._is_over.set()
        async with asyncio.timeout(service_process.TIMEOUT_SECONDS):
            await asyncio.gather(*self._tasks)

    async def _some_are_answered(self) -> None:
        goal = len(self._answered) + self._chance.choice(ANSWERS)

        async def is_reached() -> bool:
            assert not any(task.done() for task in self._tasks), [task for task in self._tasks if task.done()]
            return len(self._answered) >= goal

        await service_process.until(is_reached)
        await asyncio.sleep(self._chance.uniform(0, MOMENT_SECONDS))


async def check_end(service: service_process.Service, *, messages: int) -> None:
    """It has had no fault of its own, stops in order, and leaves a consistent store with so many messages at least."""
    assert await service.stop() == 0
    assert service.errors() == []
    code, printed = await service.command("verify")
    assert (code, printed["findings"]) == (0, [])
    assert printed["counts"]["messages"] >= messages


@pytest.fixture
async def service(url: str, tmp_path: Path) -> AsyncIterator[service_process.Service]:
    async with service_process.running(tmp_path, url) as running:
        yield running


@SEEDS
async def test_a_service_killed_again_and_again_loses_and_doubles_nothing(
    service: service_process.Service, seed: int
) -> None:
    async with service_process.calling(service) as callers:
        chance = random.Random(seed)

        async def send(number: int, count: int) -> None:
            for _ in range(2 if chance.random() < 0.2 else 1):
                await callers.send(f"{number}-{count}")

        await SteadyLoad(send, callers.receipts, chance).survive_kills(service)
        await callers.repeat_everything()
        await check_end(service, messages=len(callers.receipts))
        await callers.prove()


async def test_callers_that_vanish_in_the_middle_of_a_request_can_come_back(service: service_process.Service) -> None:
    """The other way round: a caller dies, anywhere in its request or before the answer, and repeats it later."""
    async with service_process.calling(service) as callers:
        for eighths in range(9):
            key = f"cut-{eighths}"
            request = callers.client.build_request("POST", "/", json=callers.body(key)).content
            fields = [f"Idempotency-Key: {key}", f"Authorization: Bearer {callers.account.api_key}"]
            whole = raw_http.post("/emails", request, *fields)
            async with raw_http.connect(service.address) as connection:
                await connection.send(whole[: len(whole) * eighths // 8])
                connection.writer.transport.abort()
            receipt = await callers.send(key)
            assert eighths == 8 or not receipt.replayed
        assert await service.stop() == 0
        assert service.errors() == []
        await callers.prove()


@pytest.fixture
async def senders(url: str, tmp_path: Path) -> AsyncIterator[submission_service.Senders]:
    async with submission_service.running(tmp_path, url) as service, submission_service.sending(service) as opened:
        yield opened


@SEEDS
async def test_a_listener_killed_again_and_again_loses_and_duplicates_nothing(
    senders: submission_service.Senders, seed: int
) -> None:
    clients = [senders.client() for _ in range(CALLERS)]

    async def send(number: int, count: int) -> None:
        attempt = senders.send_until_answered if number < KEYED else senders.once
        await attempt(clients[number], f"{number}-{count}")

    await SteadyLoad(send, senders.accepted, random.Random(seed)).survive_kills(senders.service)
    # No key is free: each is answered with the message that it has made.
    for subject, message_id in dict(senders.accepted).items():
        if int(subject.partition("-")[0]) < KEYED:
            assert await senders.send_until_answered(clients[0], subject) == message_id
    await check_end(senders.service, messages=len(senders.accepted))
    assert senders.refusals == []
    assert senders.unanswered
    await senders.prove()


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_a_client_that_vanishes_anywhere_in_its_message_can_come_back(
    senders: submission_service.Senders,
) -> None:
    """The other way round: the client dies, and repeats with the same key later."""
    client = senders.client()
    for eighths in range(9):
        subject = f"cut-{eighths}"
        octets = submission_service.content(subject, key=subject)
        async with senders.session() as session:
            assert (await session.begin()).code == 354
            session.write(octets[: len(octets) * eighths // 8])
        await senders.send_until_answered(client, subject)
    assert await senders.service.stop() == 0
    assert senders.service.errors() == []
    await senders.prove()
