"""The status of provider queues: the last report counts, and workers that stop reporting are deleted."""

from postroad.storage import provider_queues
from postroad.storage.store import Store

NOW = 1_800_000_000_000_000


def status(
    name: str = "google", *, worker: str = "w1", state: str = "paused", updated_at: int = NOW
) -> provider_queues.Status:
    return provider_queues.Status(worker, name, state, "slow down", NOW + 5, updated_at)


async def put(store: Store, *rows: provider_queues.Status) -> None:
    async with store.transaction() as tx:
        await provider_queues.put(tx, rows)


async def heard(store: Store, since: int = 0) -> list[provider_queues.Status]:
    async with store.reading() as tx:
        return await provider_queues.heard_since(tx, since)


async def test_the_last_status_of_each_worker_for_a_provider_queue_is_kept(store: Store) -> None:
    await put(store, status(), status(worker="w2"), status("apple"))
    changed = provider_queues.Status("w1", "google", "blocked", "no answer", NOW + 9, NOW + 1)
    await put(store, changed)
    assert await heard(store) == [status("apple"), changed, status(worker="w2")]


async def test_a_provider_queue_that_is_open_again_is_removed_for_this_worker_only(store: Store) -> None:
    await put(store, status(), status(worker="w2"), status("apple"))
    async with store.transaction() as tx:
        await provider_queues.remove(tx, "w1", ["google", "unknown"])
    assert await heard(store) == [status("apple"), status(worker="w2")]


async def test_a_worker_that_stops_leaves_nothing(store: Store) -> None:
    await put(store, status(), status(worker="w2"), status("apple"))
    async with store.transaction() as tx:
        await provider_queues.remove_worker(tx, "w1")
    assert await heard(store) == [status(worker="w2")]


async def test_workers_that_were_not_heard_of_are_not_shown_and_then_swept(store: Store) -> None:
    await put(store, status(), status(worker="w2", updated_at=NOW + 10))
    assert await heard(store, NOW + 1) == [status(worker="w2", updated_at=NOW + 10)]
    async with store.transaction() as tx:
        assert await provider_queues.sweep(tx, before=NOW + 10) == 1
        assert await provider_queues.sweep(tx, before=NOW + 10) == 0
    assert await heard(store) == [status(worker="w2", updated_at=NOW + 10)]


async def test_recording_nothing_is_allowed(store: Store) -> None:
    async with store.transaction() as tx:
        await provider_queues.put(tx, [])
        await provider_queues.remove(tx, "w1", [])
    assert await heard(store) == []
