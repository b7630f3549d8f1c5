"""Counts of pending webhook deliveries: by state and enabled flag, without those of removed endpoints."""

from postroad.storage.engine.store import Store
from postroad.storage.mail import webhooks
from tests.storage.webhook_samples import LEASE, NOW, add, claim, delivery, webhook


async def counts(store: Store) -> dict[str, tuple[int, int]]:
    async with store.scanning() as tx:
        found = await webhooks.delivery_counts(tx)
    assert all(state == count.state for state, count in found.items())
    return {state: (count.deliveries, count.due_at) for state, count in found.items()}


async def test_nothing_is_counted_where_nothing_waits(store: Store) -> None:
    assert await counts(store) == {}
    await add(store, webhook(), delivery(1, state="succeeded", ended_at=NOW), delivery(2, state="failed", ended_at=NOW))
    assert await counts(store) == {}


async def test_deliveries_are_counted_by_state_over_all_endpoints(store: Store) -> None:
    for number, enabled in ((1, 1), (2, 1), (3, 0), (4, 0)):
        mine = (f"whk_{number}", f"acc_{number}")
        rows = [delivery(10 * number + each, *mine, due_at=NOW + 100 * number - each) for each in range(3)]
        await add(store, webhook(*mine, enabled=enabled), *rows)
    await claim(store, 1)
    await add(store, delivery(99, state="waiting", due_at=NOW + 7))
    assert await counts(store) == {"ready": (5, NOW + 98), "held": (6, NOW + 298), "waiting": (2, NOW + 7)}


async def test_what_is_claimed_waits_for_the_end_of_its_lease(store: Store) -> None:
    await add(store, webhook(), delivery(1))
    await claim(store)
    assert await counts(store) == {"waiting": (1, LEASE)}


async def test_what_a_removed_endpoint_left_is_neither_ready_nor_held(store: Store) -> None:
    await add(store, webhook(), delivery(1))
    async with store.transaction() as tx:
        await webhooks.remove(tx, "whk_1", now=NOW)
    assert await counts(store) == {}
