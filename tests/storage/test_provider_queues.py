"""The status of provider queues: the last report counts, and workers that stop reporting are deleted."""

from postroad.storage.engine.store import Store
from postroad.storage.operations import processes

NOW = 1_800_000_000_000_000


def status(
    name: str = "google", *, worker: str = "w1", state: str = "paused", updated_at: int = NOW
) -> processes.QueueStatus:
    return processes.QueueStatus(worker, name, state, "slow down", NOW + 5, updated_at)


async def put(store: Store, *rows: processes.QueueStatus) -> None:
    async with store.transaction() as tx:
        await processes.put_queues(tx, rows)


async def heard(store: Store, since: int = 0) -> list[processes.QueueStatus]:
    async with store.reading() as tx:
        return await processes.queues_since(tx, since)


async def test_the_last_status_of_each_worker_for_a_provider_queue_is_kept(store: Store) -> None:
    await put(store, status(), status(worker="w2"), status("apple"))
    changed = processes.QueueStatus("w1", "google", "blocked", "no answer", NOW + 9, NOW + 1)
    await put(store, changed)
    assert await heard(store) == [status("apple"), changed, status(worker="w2")]


async def test_a_provider_queue_that_is_open_again_is_removed_for_this_worker_only(store: Store) -> None:
    await put(store, status(), status(worker="w2"), status("apple"))
    async with store.transaction() as tx:
        await processes.remove_queues(tx, "w1", ["google", "unknown"])
    assert await heard(store) == [status("apple"), status(worker="w2")]


async def test_a_worker_that_stops_leaves_nothing(store: Store) -> None:
    await put(store, status(), status(worker="w2"), status("apple"))
    async with store.transaction() as tx:
        await processes.remove_queues_of(tx, "w1")
    assert await heard(store) == [status(worker="w2")]


async def test_workers_that_were_not_heard_of_are_not_shown_and_then_swept(store: Store) -> None:
    await put(store, status(), status(worker="w2", updated_at=NOW + 10))
    assert await heard(store, NOW + 1) == [status(worker="w2", updated_at=NOW + 10)]
    async with store.transaction() as tx:
        assert await processes.sweep_queues(tx, before=NOW + 10) == 1
        assert await processes.sweep_queues(tx, before=NOW + 10) == 0
    assert await heard(store) == [status(worker="w2", updated_at=NOW + 10)]


async def test_recording_nothing_is_allowed(store: Store) -> None:
    async with store.transaction() as tx:
        await processes.put_queues(tx, [])
        await processes.remove_queues(tx, "w1", [])
    assert await heard(store) == []
