"""Counters of failed logins: stored, replaced, and deleted when all failures are forgotten."""

import pytest

from postroad.storage import login_failures
from postroad.storage.store import Store


async def test_counters_are_stored_and_replaced(store: Store) -> None:
    async with store.transaction() as tx:
        await login_failures.put(tx, {b"a": 5, b"b": 6})
        await login_failures.put(tx, {b"b": 7})
        await login_failures.put(tx, {})
    async with store.transaction() as tx:
        assert await login_failures.lock(tx, [b"a", b"b", b"c"]) == {b"a": 5, b"b": 7}


async def test_forgotten_counters_go_some_at_a_time(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_failures, "SWEEP_ROWS", 2)
    async with store.transaction() as tx:
        await login_failures.put(tx, {bytes([number]): number for number in range(5)})
        assert [await login_failures.sweep(tx, now=3) for _ in range(3)] == [2, 2, 0]
        assert await login_failures.lock(tx, [bytes([number]) for number in range(5)]) == {b"\x04": 4}
