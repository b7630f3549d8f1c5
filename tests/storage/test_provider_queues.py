"""What workers tell of their pools: the last word counts, and the dead are forgotten."""

from postroad.storage import provider_queues
from postroad.storage.store import Store

NOW = 1_800_000_000_000_000


def pool(
    name: str = "google", *, worker: str = "w1", state: str = "paused", updated_at: int = NOW
) -> provider_queues.Pool:
    return provider_queues.Pool(worker, name, state, "slow down", NOW + 5, updated_at)


async def put(store: Store, *rows: provider_queues.Pool) -> None:
    async with store.transaction() as tx:
        await provider_queues.put(tx, rows)


async def heard(store: Store, since: int = 0) -> list[provider_queues.Pool]:
    async with store.reading() as tx:
        return await provider_queues.heard_since(tx, since)


async def test_the_last_word_of_each_worker_about_a_pool_is_kept(store: Store) -> None:
    await put(store, pool(), pool(worker="w2"), pool("apple"))
    changed = provider_queues.Pool("w1", "google", "blocked", "no answer", NOW + 9, NOW + 1)
    await put(store, changed)
    assert await heard(store) == [pool("apple"), changed, pool(worker="w2")]


async def test_a_pool_that_is_open_again_is_removed_for_this_worker_only(store: Store) -> None:
    await put(store, pool(), pool(worker="w2"), pool("apple"))
    async with store.transaction() as tx:
        await provider_queues.remove(tx, "w1", ["google", "unknown"])
    assert await heard(store) == [pool("apple"), pool(worker="w2")]


async def test_a_worker_that_stops_leaves_nothing(store: Store) -> None:
    await put(store, pool(), pool(worker="w2"), pool("apple"))
    async with store.transaction() as tx:
        await provider_queues.remove_worker(tx, "w1")
    assert await heard(store) == [pool(worker="w2")]


async def test_workers_that_were_not_heard_of_are_not_shown_and_then_swept(store: Store) -> None:
    await put(store, pool(), pool(worker="w2", updated_at=NOW + 10))
    assert await heard(store, NOW + 1) == [pool(worker="w2", updated_at=NOW + 10)]
    async with store.transaction() as tx:
        assert await provider_queues.sweep(tx, before=NOW + 10) == 1
        assert await provider_queues.sweep(tx, before=NOW + 10) == 0
    assert await heard(store) == [pool(worker="w2", updated_at=NOW + 10)]


async def test_telling_nothing_is_allowed(store: Store) -> None:
    async with store.transaction() as tx:
        await provider_queues.put(tx, [])
        await provider_queues.remove(tx, "w1", [])
    assert await heard(store) == []
