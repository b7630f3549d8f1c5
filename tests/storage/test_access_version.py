"""The access version: moves with every change, and only when that is committed."""

from postroad.storage import access_version
from postroad.storage.store import Store


async def test_it_starts_at_zero_and_moves_by_one(store: Store) -> None:
    async with store.transaction() as tx:
        assert await access_version.version(tx) == 0
        await access_version.bump(tx)
        await access_version.bump(tx)
        assert await access_version.version(tx) == 2
    async with store.reading() as tx:
        assert await access_version.version(tx) == 2
