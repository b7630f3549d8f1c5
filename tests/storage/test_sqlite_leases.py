"""Leases in a file: they do not wait for the disk, and transactions go first."""

import asyncio

import pytest

from postroad.storage.engine.sqlite import SqliteStore
from postroad.storage.people import credentials
from tests.storage import samples

pytestmark = pytest.mark.usefixtures("real_disk")


async def version(store: SqliteStore) -> int:
    async with store.reading() as tx:
        return await credentials.access_version(tx)


async def test_a_lease_does_not_wait_for_the_disk_and_the_next_transaction_does(sqlite_store: SqliteStore) -> None:
    samples.teach(sqlite_store, flush="PRAGMA synchronous")
    for _ in range(2):
        async with sqlite_store.leasing() as tx:
            await credentials.bump_access_version(tx)
            assert await tx.fetch("test.flush") == [(1,)]  # NORMAL
        async with sqlite_store.transaction() as tx:
            await credentials.bump_access_version(tx)
            assert await tx.fetch("test.flush") == [(2,)]  # FULL
    assert await version(sqlite_store) == 4


async def test_a_lease_lets_the_transactions_that_wait_go_first_but_not_again_and_again(
    sqlite_store: SqliteStore,
) -> None:
    order: list[str] = []

    async def lease() -> None:
        async with sqlite_store.leasing():
            order.append("lease")

    async def write(name: str) -> None:
        async with sqlite_store.transaction() as tx:
            await credentials.bump_access_version(tx)
            order.append(name)
            if name == "first":  # the lease is first in line for the slot, and lets it pass
                tasks.append(asyncio.create_task(write("third")))

    async with sqlite_store.transaction():
        tasks = [asyncio.create_task(work) for work in (lease(), write("first"), write("second"))]
        await asyncio.sleep(0)
    while not all(task.done() for task in tasks):
        await asyncio.wait(tasks)
    assert order == ["first", "second", "lease", "third"]
