"""kill -9 of the SMTP listener at any moment, under load: 250 means that the message is stored exactly once.

Clients with a key repeat their mail until somebody answers, and it is taken once. Clients without one never repeat:
what they were not answered is there once or not at all.
"""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.reliability import profile, service_process, submission_service

KEYED, KEYLESS = 4, 2
# Enough for any run; a client that would send more has missed the end of the test.
MAX_SENDS = 100_000
KILLS = {"sqlite": 3, "postgres": 2}
# Between two kills at least this many messages are taken.
ANSWERS = range(4, 30)
# A message takes some milliseconds: the kill comes anywhere in several of them.
MOMENT_SECONDS = 0.02


class ClientLoad:
    """Clients at work, each with one message after the other."""

    def __init__(self, senders: submission_service.Senders, chance: random.Random) -> None:
        self.senders = senders
        self._chance = chance
        self._is_over = asyncio.Event()
        self._tasks = [asyncio.create_task(self._work(number)) for number in range(KEYED + KEYLESS)]

    async def _work(self, number: int) -> None:
        client = self.senders.client()
        for count in itertools.count():
            assert count < MAX_SENDS
            subject = f"{number}-{count}"
            if number < KEYED:
                await self.senders.send_until_answered(client, subject)
            else:
                await self.senders.once(client, subject)
            if self._is_over.is_set():
                return

    async def some_are_taken(self) -> None:
        """Wait until some more messages are taken, and for a moment that nobody can foretell."""
        goal = len(self.senders.accepted) + self._chance.choice(ANSWERS)

        async def is_reached() -> bool:
            assert not any(task.done() for task in self._tasks), [task for task in self._tasks if task.done()]
            return len(self.senders.accepted) >= goal

        await service_process.until(is_reached)
        await asyncio.sleep(self._chance.uniform(0, MOMENT_SECONDS))

    async def finish(self) -> None:
        self._is_over.set()
        async with asyncio.timeout(service_process.TIMEOUT_SECONDS):
            await asyncio.gather(*self._tasks)


@pytest.fixture
async def senders(url: str, tmp_path: Path) -> AsyncIterator[submission_service.Senders]:
    async with submission_service.running(tmp_path, url) as service, submission_service.sending(service) as opened:
        yield opened


@pytest.mark.parametrize("seed", range(1, profile.SCALE + 1))
async def test_a_listener_killed_again_and_again_loses_and_duplicates_nothing(
    senders: submission_service.Senders, seed: int
) -> None:
    service, crowd = senders.service, ClientLoad(senders, random.Random(seed))
    for _ in range(KILLS[service.url.partition(":")[0].removesuffix("ql")]):
        await crowd.some_are_taken()
        await service.kill()
        await service.start()
    await crowd.some_are_taken()
    await crowd.finish()
    # No key is free: each is answered with the message that it has made.
    client, known = senders.client(), dict(senders.accepted)
    for subject, message_id in known.items():
        if int(subject.partition("-")[0]) < KEYED:
            assert await senders.send_until_answered(client, subject) == message_id
    assert await service.stop() == 0
    assert service.errors() == []
    assert senders.refusals == []
    assert senders.unanswered
    await senders.prove()
    code, printed = await service.command("verify")
    assert (code, printed["findings"]) == (0, [])


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
