"""Pending logins in the store: each is taken once, and those that were not completed go."""

import pytest

from postroad.storage import pending_logins
from postroad.storage.store import Store


def pending(login_id: str = "lgn_1", *, expires_at: int = 5) -> pending_logins.PendingLogin:
    return pending_logins.PendingLogin(login_id, 7, "password", expires_at)


async def test_a_pending_login_is_taken_once(store: Store) -> None:
    async with store.transaction() as tx:
        await pending_logins.insert(tx, b"one", pending())
        await pending_logins.insert(tx, b"two", pending("lgn_2"))
        assert await pending_logins.find(tx, b"one") == pending()
        assert await pending_logins.find(tx, b"other") is None
        assert await pending_logins.consume(tx, b"one") == pending()
        assert await pending_logins.consume(tx, b"one") is None
        assert await pending_logins.find(tx, b"one") is None
        assert await pending_logins.find(tx, b"two") == pending("lgn_2")


async def test_expired_ones_go_some_at_a_time(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_logins, "SWEEP_ROWS", 2)
    async with store.transaction() as tx:
        for number in range(5):
            await pending_logins.insert(tx, f"{number}".encode(), pending(expires_at=number))
        assert [await pending_logins.sweep(tx, now=2) for _ in range(2)] == [2, 1]
        assert await pending_logins.find(tx, b"3") is not None
