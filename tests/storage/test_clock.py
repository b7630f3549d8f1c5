"""The clock of the database."""

import time

from postroad.storage.engine.store import Store
from postroad.storage.operations import processes


async def test_the_time_of_the_database_is_in_microseconds_and_passes(store: Store) -> None:
    async with store.reading() as tx:
        first = await processes.database_time(tx)
        time.sleep(0.005)  # noqa: ASYNC251 - SQLite knows milliseconds
        second = await processes.database_time(tx)
    assert abs(first - time.time_ns() // 1000) < 86_400 * 1_000_000
    assert second > first
