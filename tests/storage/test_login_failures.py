"""Counters of failed logins: stored, replaced, and deleted when all failures are forgotten."""

from postroad.storage.engine.store import Store
from postroad.storage.people import rates


async def test_counters_are_stored_and_replaced(store: Store) -> None:
    async with store.transaction() as tx:
        await rates.put_failures(tx, {b"a": 5, b"b": 6})
        await rates.put_failures(tx, {b"b": 7})
        await rates.put_failures(tx, {})
    async with store.transaction() as tx:
        assert await rates.lock_failures(tx, [b"a", b"b", b"c"]) == {b"a": 5, b"b": 7}


async def test_forgotten_counters_go_some_at_a_time(store: Store) -> None:
    async with store.transaction() as tx:
        await rates.put_failures(tx, {bytes([number]): number for number in range(5)})
        assert [await rates.sweep_failures(tx, now=3, limit=2) for _ in range(3)] == [2, 2, 0]
        assert await rates.lock_failures(tx, [bytes([number]) for number in range(5)]) == {b"\x04": 4}
