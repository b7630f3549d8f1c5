"""Accounts: found by id and name, suspended, locked; entries of the ledger and balances move together."""

import asyncio

import pytest

from postroad.storage.engine.store import ConstraintViolated, Store, Transaction
from postroad.storage.people import accounts
from tests.storage import samples


async def test_a_new_account_is_active_and_has_nothing(tx: Transaction) -> None:
    await accounts.insert(tx, "acc_1", name="Shop", now=samples.NOW)
    assert await accounts.by_id(tx, "acc_1") == accounts.Account(
        "acc_1", "Shop", accounts.ACTIVE, None, 0, 0, samples.NOW
    )
    assert await accounts.by_id(tx, "acc_2") is None
    assert await accounts.by_name(tx, "SHOP") == await accounts.by_id(tx, "acc_1")
    assert await accounts.by_name(tx, "Shop 2") is None


async def test_pages_follow_a_cursor_in_the_order_of_bytes(tx: Transaction) -> None:
    ids = ["acc_A", "acc_Z", "acc__", "acc_a", "acc_z", "acc_ä"]
    for account_id in reversed(ids):
        await accounts.insert(tx, account_id, name=account_id.encode().hex(), now=0)
    found, cursor = [], ""
    while page := await accounts.page(tx, after=cursor, limit=2):
        found += [account.id for account in page]
        cursor = found[-1]
    assert found == ids == sorted(ids, key=str.encode)


async def test_an_account_is_suspended_and_resumed(tx: Transaction) -> None:
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


async def test_locking_finds_each_account_once_and_leaves_out_the_missing(tx: Transaction) -> None:
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


async def test_entries_and_balances_move_together(store: Store) -> None:
    async with store.transaction() as tx:
        await samples.add_account(tx, "acc_1")
        await samples.add_account(tx, "acc_2")
        await accounts.record_entries(
            tx,
            [
                samples.entry("led_1", "acc_1", available=100),
                samples.entry("led_2", "acc_2", available=5),
                samples.entry("led_3", "acc_1", available=-30, reserved=30, kind=accounts.LedgerKind.RESERVE),
                samples.entry("led_4", "acc_1", available=10, reserved=-10, kind=accounts.LedgerKind.RELEASE),
                samples.entry("led_5", "acc_1", available=0, reserved=-5, kind=accounts.LedgerKind.SETTLE),
            ],
        )
    assert await samples.balances(store, "acc_1") == (80, 15)
    assert await samples.balances(store, "acc_2") == (5, 0)


async def test_a_move_below_zero_is_refused_with_its_entry(store: Store) -> None:
    async with store.transaction() as tx:
        await samples.add_account(tx, credits=10)
    for available, reserved in ((-11, 0), (0, -1), (-11, 11), (1, -1)):
        entry = samples.entry("led_1", "acc_1", available=available, reserved=reserved)
        with pytest.raises(ConstraintViolated):
            async with store.transaction() as tx:
                await accounts.record_entries(tx, [entry])
    assert await samples.balances(store, "acc_1") == (10, 0)
    assert await samples.count(store, "ledger") == 1


async def test_an_entry_of_an_unknown_kind_is_refused(store: Store) -> None:
    with pytest.raises(ConstraintViolated):
        async with store.transaction() as tx:
            await accounts.record_entries(tx, [samples.entry("led_1", "acc_1", available=1, kind="gift")])


async def test_pages_go_back_in_time_within_one_account(tx: Transaction) -> None:
    entries = [
        samples.entry(f"led_{n}", "acc_1", available=n, message_id=f"em_{n}", note="why", created_at=n)
        for n in range(5)
    ]
    await samples.add_account(tx, "acc_1")
    await samples.add_account(tx, "acc_2", credits=1)
    await accounts.record_entries(tx, entries)
    assert await accounts.entries(tx, "acc_1", before="led_~", limit=3) == [entries[4], entries[3], entries[2]]
    assert await accounts.entries(tx, "acc_1", before="led_2", limit=3) == [entries[1], entries[0]]
