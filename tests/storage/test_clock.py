"""The clock of the database."""

import time

from postroad.storage import clock
from postroad.storage.store import Store


async def test_the_time_of_the_database_is_in_microseconds_and_passes(store: Store) -> None:
    async with store.reading() as tx:
        first = await clock.now(tx)
        time.sleep(0.005)  # noqa: ASYNC251 - SQLite knows milliseconds
        second = await clock.now(tx)
    assert abs(first - time.time_ns() // 1000) < 86_400 * 1_000_000
    assert second > first
