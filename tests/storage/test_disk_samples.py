"""Measurements of free space: by host and folder, the oldest since a time, and deleted when they are old."""

from postroad.storage import disk_samples
from postroad.storage.store import Store


async def test_the_oldest_measurement_of_a_folder_on_a_host_is_found_and_old_ones_are_deleted(store: Store) -> None:
    async with store.transaction() as tx:
        for host, folder, now, free in (("a", "/d", 1, 90), ("a", "/d", 5, 50), ("a", "/e", 2, 7), ("b", "/d", 0, 8)):
            await disk_samples.add(tx, host, folder, now=now, free_bytes=free)
        await disk_samples.add(tx, "a", "/d", now=5, free_bytes=40)
        assert await disk_samples.oldest(tx, "a", "/d", since=0) == (1, 90)
        assert await disk_samples.oldest(tx, "a", "/d", since=2) == (5, 40)
        assert await disk_samples.oldest(tx, "a", "/d", since=6) is None
        assert await disk_samples.sweep(tx, before=2) == 2
        assert await disk_samples.oldest(tx, "a", "/d", since=0) == (5, 40)
