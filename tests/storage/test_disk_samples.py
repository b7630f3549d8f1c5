"""Measurements of free space: by host and folder, the oldest since a time, and deleted when they are old."""

from postroad.storage.engine.store import Store
from postroad.storage.operations import space


async def test_the_oldest_measurement_of_a_folder_on_a_host_is_found_and_old_ones_are_deleted(store: Store) -> None:
    async with store.transaction() as tx:
        for host, folder, now, free in (("a", "/d", 1, 90), ("a", "/d", 5, 50), ("a", "/e", 2, 7), ("b", "/d", 0, 8)):
            await space.add_sample(tx, host, folder, now=now, free_bytes=free)
        await space.add_sample(tx, "a", "/d", now=5, free_bytes=40)
        assert await space.oldest_sample(tx, "a", "/d", since=0) == (1, 90)
        assert await space.oldest_sample(tx, "a", "/d", since=2) == (5, 40)
        assert await space.oldest_sample(tx, "a", "/d", since=6) is None
        assert await space.sweep_samples(tx, before=2) == 2
        assert await space.oldest_sample(tx, "a", "/d", since=0) == (5, 40)
