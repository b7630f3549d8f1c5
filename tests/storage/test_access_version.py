"""The access version: moves with every change, and only when that is committed."""

from postroad.storage.engine.store import Store
from postroad.storage.people import credentials


async def test_it_starts_at_zero_and_moves_by_one(store: Store) -> None:
    async with store.transaction() as tx:
        assert await credentials.access_version(tx) == 0
        await credentials.bump_access_version(tx)
        await credentials.bump_access_version(tx)
        assert await credentials.access_version(tx) == 2
    async with store.reading() as tx:
        assert await credentials.access_version(tx) == 2
