"""Shared request rates on both engines: written once a batch, found again, deleted when full."""

from postroad.model.delivery import throttle
from postroad.storage.engine.store import SWEEP_ROWS, Store
from postroad.storage.people import rates

ONE = rates.Rate("cred_1", "acc_1", throttle.SharedBucket(full_at=2_000, seen_at=1_000))
TWO = rates.Rate("cred_2", "acc_1", throttle.SharedBucket(full_at=3_000, seen_at=1_500))


async def test_a_bucket_is_found_as_it_was_last_written(store: Store) -> None:
    later = rates.Rate("cred_1", "acc_1", throttle.SharedBucket(full_at=9_000, seen_at=8_000))
    async with store.transaction() as tx:
        await rates.put(tx, [TWO, ONE])
    async with store.transaction() as tx:
        await rates.put(tx, [later])
        await rates.put(tx, [])
    async with store.reading() as tx:
        found = await rates.find(tx, {"cred_1", "cred_2", "cred_3"})
    assert found == {"cred_1": later.bucket, "cred_2": TWO.bucket}


async def test_a_sweep_takes_what_was_full_before_and_no_more_than_its_share(store: Store) -> None:
    many = [
        rates.Rate(f"cred_{number}", "acc_1", throttle.SharedBucket(full_at=10, seen_at=1))
        for number in range(100, 101 + SWEEP_ROWS)
    ]
    async with store.transaction() as tx:
        await rates.put(tx, [ONE, TWO, *many])
    async with store.transaction() as tx:
        assert await rates.sweep(tx, before=3_000) == SWEEP_ROWS
        assert await rates.sweep(tx, before=3_000) == 2
        assert await rates.sweep(tx, before=3_000) == 0
        assert await rates.find(tx, {"cred_1", "cred_2"}) == {"cred_2": TWO.bucket}
