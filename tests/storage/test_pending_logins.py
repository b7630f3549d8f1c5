"""Pending logins in the store: each is taken once, and those that were not completed go."""

from postroad.storage.engine.store import Store
from postroad.storage.people import sessions


def pending(login_id: str = "lgn_1", *, expires_at: int = 5) -> sessions.PendingLogin:
    return sessions.PendingLogin(login_id, 7, "password", expires_at)


async def test_a_pending_login_is_taken_once(store: Store) -> None:
    async with store.transaction() as tx:
        await sessions.insert_pending(tx, b"one", pending())
        await sessions.insert_pending(tx, b"two", pending("lgn_2"))
        assert await sessions.find_pending(tx, b"one") == pending()
        assert await sessions.find_pending(tx, b"other") is None
        assert await sessions.consume_pending(tx, b"one") == pending()
        assert await sessions.consume_pending(tx, b"one") is None
        assert await sessions.find_pending(tx, b"one") is None
        assert await sessions.find_pending(tx, b"two") == pending("lgn_2")


async def test_expired_ones_go_some_at_a_time(store: Store) -> None:
    async with store.transaction() as tx:
        for number in range(5):
            await sessions.insert_pending(tx, f"{number}".encode(), pending(expires_at=number))
        assert [await sessions.sweep_pending(tx, now=2, limit=2) for _ in range(2)] == [2, 1]
        assert await sessions.find_pending(tx, b"3") is not None
