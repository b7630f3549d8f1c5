"""The size of the database and of its disk is known, and what removed rows leave goes back in small steps."""

import apsw
import pytest

from postroad.storage.engine.sqlite import SqliteStore
from postroad.storage.engine.store import Store, Transaction
from postroad.storage.mail import messages
from postroad.storage.operations import space
from tests.storage import samples


async def read(store: Store) -> space.Space:
    async with store.reading() as tx:
        return await space.read(tx)


async def test_the_size_is_known_and_an_empty_database_has_nothing_to_return(store: Store) -> None:
    found = await read(store)
    assert found.size > 100_000
    assert (found.free is None) == (store.dialect == "postgres")
    async with store.transaction() as tx:
        assert not await space.shrink(tx)


@pytest.mark.parametrize("free, is_worth_it", [(None, False), (0, False), (100, False), (101, True)])
def test_a_tenth_is_kept_for_new_rows(free: int | None, *, is_worth_it: bool) -> None:
    assert space.Space(1000, free).is_worth_returning == is_worth_it


async def test_space_goes_back_step_by_step(sqlite_store: SqliteStore) -> None:
    async with sqlite_store.transaction() as tx:
        await messages.insert(tx, [samples.message(f"em_{number}", mime=bytes(100_000)) for number in range(40)])
    full = await read(sqlite_store)
    async with sqlite_store.transaction() as tx:
        await tx.run_script("DELETE FROM bodies")
    async with sqlite_store.transaction() as tx:
        assert await space.shrink(tx)
    first = await read(sqlite_store)
    assert 128 <= (full.size - first.size) // 4096 <= 130  # pages that index others go with them
    for _ in range(20):
        async with sqlite_store.transaction() as tx:
            if not await space.shrink(tx):
                break
    last = await read(sqlite_store)
    assert last.size < full.size // 4
    assert not last.is_worth_returning
    sqlite_store._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    assert sqlite_store._path.stat().st_size == last.size


async def test_a_file_from_before_keeps_its_space_and_works(sqlite_store: SqliteStore) -> None:
    sqlite_store._writer.execute("PRAGMA auto_vacuum=NONE")
    sqlite_store._writer.execute("VACUUM")
    async with sqlite_store.transaction() as tx:
        await messages.insert(tx, [samples.message("em_1", mime=bytes(1_000_000))])
    async with sqlite_store.transaction() as tx:
        await tx.run_script("DELETE FROM bodies")
    async with sqlite_store.transaction() as tx:
        assert (await space.read(tx)).is_worth_returning
        assert not await space.shrink(tx)


async def test_the_oldest_measurement_of_a_folder_on_a_host_is_found_and_old_ones_are_deleted(tx: Transaction) -> None:
    for host, folder, now, free in (("a", "/d", 1, 90), ("a", "/d", 5, 50), ("a", "/e", 2, 7), ("b", "/d", 0, 8)):
        await space.add_sample(tx, host, folder, now=now, free_bytes=free)
    await space.add_sample(tx, "a", "/d", now=5, free_bytes=40)
    assert await space.oldest_sample(tx, "a", "/d", since=0) == (1, 90)
    assert await space.oldest_sample(tx, "a", "/d", since=2) == (5, 40)
    assert await space.oldest_sample(tx, "a", "/d", since=6) is None
    assert await space.sweep_samples(tx, before=2) == 2
    assert await space.oldest_sample(tx, "a", "/d", since=0) == (5, 40)
