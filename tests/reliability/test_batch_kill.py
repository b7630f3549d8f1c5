"""kill -9 under a load of batches: an acknowledged batch is whole, and any other is whole or not there at all.

Callers repeat a batch with the same key until somebody answers. The last ones are not repeated, so that nobody knows
what became of them.
"""

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from postroad.services.accounts import account_registry as accounts
from postroad.services.operations import operator_jobs
from tests.reliability import service_process

CALLERS = 4
ITEMS = 10
BATCHES = 6
KILL_AFTER = (3, 9)


@dataclass(slots=True)
class BatchCallers:
    """Callers who send batches, and what they were answered."""

    callers: service_process.Callers
    answered: dict[str, service_process.Receipt] = field(default_factory=dict)

    async def send_until_answered(self, key: str) -> service_process.Receipt:
        async with asyncio.timeout(service_process.TIMEOUT_SECONDS):
            while (receipt := await self.send(key)) is None:
                await asyncio.sleep(service_process.POLL_SECONDS)
        return receipt

    async def send(self, key: str) -> service_process.Receipt | None:
        """One request; None if it was not answered, or was refused for now."""
        try:
            response = await self.callers.client.post(
                f"{self.callers.service.base_url}/emails/batch",
                json=body(key),
                headers={**self.callers.account.headers, "Idempotency-Key": key},
            )
        except (httpx.TransportError, httpx.UnsupportedProtocol):
            return None
        if response.status_code != 202:
            assert response.json()["code"] in service_process.TRY_AGAIN, response.text
            return None
        receipt = service_process.Receipt.of(response)
        first = self.answered.setdefault(key, receipt)
        assert receipt.body == first.body, key
        return receipt

    async def work(self, number: int) -> None:
        for count in range(BATCHES):
            await self.send_until_answered(f"{number}-{count}")

    async def are_answered(self, goal: int) -> None:
        async def is_reached() -> bool:
            return len(self.answered) >= goal

        await service_process.until(is_reached)


def body(key: str) -> dict[str, object]:
    """Every other batch has an item that is refused; the others want all or nothing."""
    emails = [
        {"from": "shop@example.com", "to": "ada@example.net", "subject": f"{key}/{item}", "text": "Hi"}
        for item in range(ITEMS)
    ]
    if int(key.rpartition("-")[2]) % 2:
        return {"emails": emails, "all_or_nothing": True}
    return {"emails": [*emails, {**emails[0], "to": "nobody"}]}


async def test_no_batch_is_there_in_part_or_twice(clean_sqlite_url: str, tmp_path: Path) -> None:
    async with (
        service_process.running(tmp_path, clean_sqlite_url) as service,
        service_process.calling(service) as callers,
    ):
        crowd = BatchCallers(callers)
        work = asyncio.gather(*(crowd.work(number) for number in range(CALLERS)))
        for goal in KILL_AFTER:
            await crowd.are_answered(goal)
            await service.kill()
            await service.start()
        await work
        lost = asyncio.gather(*(crowd.send(f"lost-{number}") for number in range(CALLERS)))
        await asyncio.sleep(service_process.POLL_SECONDS)
        await service.kill()
        await lost
        await service.start()
        for key in list(crowd.answered):
            assert (await crowd.send_until_answered(key)).replayed
        assert await service.stop() == 0
        await prove(clean_sqlite_url, callers.account.id, crowd.answered)


async def prove(url: str, account_id: str, answered: dict[str, service_process.Receipt]) -> None:
    """Each batch is there with all its items, each once; those that were answered are, with the ids of the answer."""
    async with service_process.inside(url) as ctx:
        stored = await service_process.stored_messages(ctx, account_id)
        account = await accounts.find(ctx, account_id)
        report = await operator_jobs.check_consistency(ctx)
    batches: dict[str, dict[str, str]] = {}
    for subject, message_id in stored:
        batches.setdefault(subject.partition("/")[0], {})[subject] = message_id
    assert sum(map(len, batches.values())) == len(stored)
    assert {key: len(items) for key, items in batches.items()} == dict.fromkeys(batches, ITEMS)
    for key, receipt in answered.items():
        results = json.loads(receipt.body)["results"]
        assert [result["id"] for result in results[:ITEMS]] == [batches[key][f"{key}/{n}"] for n in range(ITEMS)]
    assert report.findings == []
    assert report.counts.idempotency_keys == len(batches)
    assert (account.available, account.reserved) == (service_process.CREDITS - len(stored), len(stored))
