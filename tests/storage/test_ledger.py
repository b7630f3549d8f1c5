"""The ledger: entry and balance move together, and no balance goes below zero."""

import pytest

from postroad.storage.engine.store import ConstraintViolated, Store
from postroad.storage.people import accounts
from tests.storage import samples


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


async def test_nothing_is_recorded_for_nothing(store: Store) -> None:
    async with store.transaction() as tx:
        await accounts.record_entries(tx, [])
    assert await samples.count(store, "ledger") == 0


@pytest.mark.parametrize("available, reserved", [(-11, 0), (0, -1), (-11, 11), (1, -1)])
async def test_a_move_below_zero_is_refused_with_its_entry(store: Store, available: int, reserved: int) -> None:
    async with store.transaction() as tx:
        await samples.add_account(tx, credits=10)
    with pytest.raises(ConstraintViolated):
        async with store.transaction() as tx:
            await accounts.record_entries(tx, [samples.entry("led_1", "acc_1", available=available, reserved=reserved)])
    assert await samples.balances(store, "acc_1") == (10, 0)
    assert await samples.count(store, "ledger") == 1


async def test_an_entry_of_an_unknown_kind_is_refused(store: Store) -> None:
    with pytest.raises(ConstraintViolated):
        async with store.transaction() as tx:
            await accounts.record_entries(tx, [samples.entry("led_1", "acc_1", available=1, kind="gift")])


async def test_pages_go_back_in_time_within_one_account(store: Store) -> None:
    entries = [
        samples.entry(f"led_{n}", "acc_1", available=n, message_id=f"em_{n}", note="why", created_at=n)
        for n in range(5)
    ]
    async with store.transaction() as tx:
        await samples.add_account(tx, "acc_1")
        await samples.add_account(tx, "acc_2", credits=1)
        await accounts.record_entries(tx, entries)
    async with store.scanning() as tx:
        assert await accounts.entries(tx, "acc_1", before="led_~", limit=3) == [entries[4], entries[3], entries[2]]
        assert await accounts.entries(tx, "acc_1", before="led_2", limit=3) == [entries[1], entries[0]]
