"""kill -9 at any moment: of the service, and of the database server under it.

Callers go on as real ones do: they repeat a request with the same key until somebody answers. In the end every key has
made one message, every answer is repeated byte for byte, and the store is consistent.
"""

import asyncio
import itertools
import random
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests import raw_http
from tests.postgres_server import TIMEOUT_SECONDS as SERVER_TIMEOUT_SECONDS
from tests.postgres_server import PostgresServer
from tests.reliability import profile, service_process

CALLERS = 6
# Enough for any run; a caller that would send more has missed the end of the test.
MAX_SENDS = 100_000
KILLS = {"sqlite": 3, "postgres": 2}
# Between two kills at least this many requests are answered.
ANSWERS = range(4, 30)
# A request takes some milliseconds: the kill comes anywhere in several of them.
MOMENT_SECONDS = 0.02


class CrashingServer(PostgresServer):
    """A database server that can be ended without a chance to tidy up; its next start repairs what it finds."""

    def crash(self) -> None:
        assert self._server is not None
        assert self._guard is not None
        self._server.send_signal(signal.SIGQUIT)  # PostgreSQL's "immediate" shutdown
        self._server.wait(SERVER_TIMEOUT_SECONDS)
        self._guard.communicate(b"stopped\n", timeout=SERVER_TIMEOUT_SECONDS)
        self._server = self._guard = None


class ClientLoad:
    """Callers at work, each with one request after the other."""

    def __init__(self, callers: service_process.Callers, chance: random.Random) -> None:
        self.callers = callers
        self._chance = chance
        self._is_over = asyncio.Event()
        self._tasks = [asyncio.create_task(self._work(number)) for number in range(CALLERS)]

    async def _work(self, number: int) -> None:
        for count in itertools.count():
            assert count < MAX_SENDS
            key = f"{number}-{count}"
            await self.callers.send(key)
            if self._chance.random() < 0.2:
                await self.callers.send(key)
            if self._is_over.is_set():
                return

    async def some_are_answered(self) -> None:
        """Wait until some more requests are answered, and for a moment that nobody can foretell."""
        goal = len(self.callers.receipts) + self._chance.choice(ANSWERS)

        async def is_reached() -> bool:
            assert not any(task.done() for task in self._tasks), [task for task in self._tasks if task.done()]
            return len(self.callers.receipts) >= goal

        await service_process.until(is_reached)
        await asyncio.sleep(self._chance.uniform(0, MOMENT_SECONDS))

    async def finish(self) -> None:
        self._is_over.set()
        async with asyncio.timeout(service_process.TIMEOUT_SECONDS):
            await asyncio.gather(*self._tasks)


@pytest.fixture
async def service(url: str, tmp_path: Path) -> AsyncIterator[service_process.Service]:
    async with service_process.running(tmp_path, url) as running:
        yield running


@pytest.mark.parametrize("seed", range(1, profile.SCALE + 1))
async def test_a_service_killed_again_and_again_loses_and_doubles_nothing(
    service: service_process.Service, seed: int
) -> None:
    async with service_process.calling(service) as callers:
        crowd = ClientLoad(callers, random.Random(seed))
        for _ in range(KILLS[service.url.partition(":")[0].removesuffix("ql")]):
            await crowd.some_are_answered()
            await service.kill()
            await service.start()
        await crowd.some_are_answered()
        await crowd.finish()
        await callers.repeat_everything()
        assert await service.stop() == 0
        assert service.errors() == []
        await callers.prove()
        code, printed = await service.command("verify")
        assert (code, printed["findings"]) == (0, [])
        assert printed["counts"]["messages"] == len(callers.receipts)


async def test_a_database_server_that_crashes_is_waited_for_without_a_restart(tmp_path: Path) -> None:
    with CrashingServer() as server:
        async with (
            service_process.running(tmp_path, server.create_database()) as service,
            service_process.calling(service) as callers,
        ):
            crowd = ClientLoad(callers, random.Random(1))
            await crowd.some_are_answered()
            await asyncio.to_thread(server.crash)
            await is_refused_as_unavailable(callers)
            await asyncio.to_thread(server.start)
            await crowd.some_are_answered()
            await crowd.finish()
            assert "service_unavailable" in callers.refusals
            assert (await callers.client.get(f"{service.base_url}/readyz")).status_code == 200
            await callers.repeat_everything()
            assert await service.stop() == 0
            assert service.errors() == []
            await callers.prove()


async def is_refused_as_unavailable(callers: service_process.Callers) -> None:
    """By every route that needs the store, and by none that does not."""
    client, base_url = callers.client, callers.service.base_url
    service_process.check_refusal(await callers.post("while away"), 503, "service_unavailable")
    service_process.check_refusal(await client.get(f"{base_url}/readyz"), 503, "service_unavailable")
    assert (await client.get(f"{base_url}/healthz")).status_code == 200
    # Who asks twice is told twice: nothing of the first request is in the way.
    service_process.check_refusal(await callers.post("while away"), 503, "service_unavailable")


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
