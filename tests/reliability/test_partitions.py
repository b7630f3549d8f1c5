"""Partitions begin, are dropped and made anew while mail goes through them: each message is there exactly once."""

import asyncio
import time
from pathlib import Path

from postroad import errors
from postroad.model.units import identifiers, times
from postroad.services.operations import operator_jobs
from postroad.storage.operations import partitions
from tests.reliability import whole_service

SENDERS = 3
CHANGES = 3


async def test_nothing_is_lost_or_doubled_while_partitions_change(clean_postgres_url: str, tmp_path: Path) -> None:
    done = asyncio.Event()
    async with whole_service.running_service(tmp_path, clean_postgres_url) as whole:
        sent = [asyncio.create_task(send(whole, sender, done)) for sender in range(SENDERS)]
        try:
            await change_often(clean_postgres_url)
        finally:
            done.set()
            counts = await asyncio.gather(*sent)
        assert min(counts) > 0
        await whole.finished()
        await whole.prove()
        async with whole_service.open_context(clean_postgres_url) as ctx:
            assert (await operator_jobs.check_consistency(ctx)).findings == []


async def send(whole: whole_service.WholeService, sender: int, done: asyncio.Event) -> int:
    """Send until the partitions have changed; returns how many messages that were."""
    number = 0
    while not done.is_set():
        await whole.accept(f"http {sender} {number}", f"smtp {sender} {number}")
        number += 2
    return number


async def change_often(url: str) -> None:
    """Drop the partitions of all mail that there is, and keep every message, because none has expired."""
    today = time.time_ns() // 1000 // times.DAY
    async with whole_service.open_context(url) as ctx:
        for day in range(100, 100 + CHANGES):
            bound = identifiers.at(identifiers.MESSAGE, (today + day) * times.DAY)
            for tables in (partitions.CONTENT, partitions.MAIL):
                while True:
                    try:
                        async with ctx.store.transaction() as tx:
                            await partitions.bound(tx, tables, before=bound)
                        async with ctx.store.transaction() as tx:
                            await partitions.extend(tx, tables, until=bound)
                        async with ctx.store.transaction() as tx:
                            assert await partitions.expire(tx, tables, before=bound, ended_after=0)
                    except errors.TemporaryFailure:
                        continue
                    break
