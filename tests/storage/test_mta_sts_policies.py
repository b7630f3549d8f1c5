"""Stored policies: the latest counts, until it expires; the number of them is bounded."""

from postroad.storage.engine.store import Store
from postroad.storage.mail import tls_policies

NOW = 1_800_000_000_000_000


async def test_what_has_expired_or_is_too_much_is_swept(store: Store) -> None:
    async with store.transaction() as tx:
        for number in range(6):
            row = tls_policies.StoredPolicy(f"{number}.example", "1", "text", NOW + number, NOW + 100)
            await tls_policies.put_policy(tx, row)
        await tls_policies.put_policy(tx, tls_policies.StoredPolicy("old.example", "1", "text", NOW, NOW + 10))
        assert await tls_policies.sweep_policies(tx, now=NOW + 9, most=7) == 0
        assert await tls_policies.sweep_policies(tx, now=NOW + 10, most=7) == 1
        assert await tls_policies.sweep_policies(tx, now=NOW + 10, most=4) == 2
        left = [await tls_policies.find_policy(tx, f"{number}.example", now=NOW + 99) for number in range(6)]
        assert [row is not None for row in left] == [False, False, True, True, True, True]
        assert await tls_policies.find_policy(tx, "5.example", now=NOW + 100) is None


async def test_a_policy_that_was_fetched_earlier_does_not_replace_a_later_one(store: Store) -> None:
    later = tls_policies.StoredPolicy("example.org", "2", "later", NOW + 1, NOW + 100)
    async with store.transaction() as tx:
        await tls_policies.put_policy(tx, later)
        await tls_policies.put_policy(tx, tls_policies.StoredPolicy("example.org", "1", "earlier", NOW, NOW + 100))
        assert await tls_policies.find_policy(tx, "example.org", now=NOW) == later
