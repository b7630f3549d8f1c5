"""Accounts: made without credits, found by id and name, listed by cursor, suspended, locked."""

import asyncio

from postroad.storage.engine.store import Store
from postroad.storage.people import accounts
from tests.storage import samples


async def test_a_new_account_is_active_and_has_nothing(store: Store) -> None:
    async with store.transaction() as tx:
        await accounts.insert(tx, "acc_1", name="Shop", now=samples.NOW)
    async with store.reading() as tx:
        assert await accounts.by_id(tx, "acc_1") == accounts.Account(
            "acc_1", "Shop", accounts.ACTIVE, None, 0, 0, samples.NOW
        )
        assert await accounts.by_id(tx, "acc_2") is None


async def test_pages_follow_a_cursor_in_the_order_of_bytes(store: Store) -> None:
    ids = ["acc_A", "acc_Z", "acc__", "acc_a", "acc_z", "acc_ä"]
    async with store.transaction() as tx:
        for account_id in reversed(ids):
            await accounts.insert(tx, account_id, name=account_id.encode().hex(), now=0)
        await tx.run_script("UPDATE accounts SET name = 'same', name_key = NULL")  # as in older versions
    found, cursor = [], ""
    async with store.scanning() as tx:
        while page := await accounts.page(tx, after=cursor, limit=2):
            found += [account.id for account in page]
            cursor = found[-1]
        named = await accounts.by_name(tx, "same", limit=3)
    assert found == ids == sorted(ids, key=str.encode)
    assert [account.id for account in named] == ids[:3]


async def test_an_account_is_suspended_and_resumed(store: Store) -> None:
    async with store.transaction() as tx:
        await samples.add_account(tx)
        assert await accounts.suspend(tx, "acc_1", reason="bounces", by=accounts.BOUNCE_GUARD, now=7)
        suspended = await accounts.by_id(tx, "acc_1")
        assert await accounts.resume(tx, "acc_1")
        resumed = await accounts.by_id(tx, "acc_1")
        assert not await accounts.resume(tx, "acc_2")
    assert suspended is not None
    assert (suspended.status, suspended.suspended_reason) == ("suspended", "bounces")
    assert (suspended.suspended_by, suspended.suspended_at) == ("bounce_guard", 7)
    assert resumed is not None
    assert (resumed.status, resumed.suspended_reason) == ("active", None)


async def test_locking_finds_each_account_once_and_leaves_out_the_missing(store: Store) -> None:
    async with store.transaction() as tx:
        for account_id in ("acc_1", "acc_2"):
            await samples.add_account(tx, account_id, credits=3)
        locked = await accounts.lock(tx, ["acc_2", "acc_9", "acc_1", "acc_2"])
        assert sorted(locked) == ["acc_1", "acc_2"]
        assert locked["acc_1"].available == 3
        assert await accounts.lock(tx, []) == {}


async def test_whoever_holds_the_lock_sees_what_the_holder_before_has_written(store: Store) -> None:
    """The rule on which idempotency rests: lock first, then look."""
    async with store.transaction() as tx:
        await samples.add_account(tx)

    async def claim(key: str) -> bool:
        async with store.transaction() as tx:
            await accounts.lock(tx, ["acc_1"])
            if await tx.fetch_many("idempotency.find", [("cred_1", "key", 0)]):
                return False
            await tx.execute_many("idempotency.insert", [("cred_1", "key", "acc_1", b"", key, 1, None)])
            return True

    claims = await asyncio.gather(*[claim(f"em_{number}") for number in range(20)])
    assert sorted(claims) == [False] * 19 + [True]
