"""Processes and provider queues that report themselves: the last report counts. The clock of the database."""

import time

from postroad.storage.engine.store import Store
from postroad.storage.operations import processes

NOW = 1_800_000_000_000_000


def process(name: str = "mx1:7", *, started_at: int = NOW, seen_at: int = NOW) -> processes.Process:
    host, _, number = name.partition(":")
    return processes.Process(name, host, int(number), ("api", "delivery"), "0.1.0", started_at, seen_at)


async def put(store: Store, *rows: processes.Process) -> None:
    async with store.transaction() as tx:
        for row in rows:
            await processes.put(tx, row)


async def seen(store: Store, since: int = 0) -> list[processes.Process]:
    async with store.reading() as tx:
        return list(await processes.seen_since(tx, since))


async def test_the_last_report_of_each_process_is_kept_the_oldest_process_first(store: Store) -> None:
    await put(store, process("mx2:8", started_at=NOW + 1), process())
    await put(store, process(seen_at=NOW + 9))
    assert await seen(store) == [process(seen_at=NOW + 9), process("mx2:8", started_at=NOW + 1)]


async def test_a_process_that_stops_or_no_longer_reports_is_gone(store: Store) -> None:
    await put(store, process(), process("mx2:8", seen_at=NOW + 5), process("mx3:9", seen_at=NOW + 5))
    assert [one.name for one in await seen(store, NOW + 1)] == ["mx2:8", "mx3:9"]
    async with store.transaction() as tx:
        await processes.remove(tx, "mx3:9")
        assert await processes.sweep(tx, before=NOW + 5) == 1
    assert [one.name for one in await seen(store)] == ["mx2:8"]


async def test_the_version_that_started_last_is_kept(store: Store) -> None:
    async with store.transaction() as tx:
        assert await processes.last_version(tx) is None
        for version in ("0.1.0", "0.2.0.dev7+gabcdef01", "0.1.0"):
            await processes.record_version(tx, version)
            assert await processes.last_version(tx) == version


def status(
    name: str = "google", *, worker: str = "w1", state: str = "paused", updated_at: int = NOW
) -> processes.QueueStatus:
    return processes.QueueStatus(worker, name, state, "slow down", NOW + 5, updated_at)


async def put_statuses(store: Store, *rows: processes.QueueStatus) -> None:
    async with store.transaction() as tx:
        await processes.put_queues(tx, rows)


async def heard(store: Store, since: int = 0) -> list[processes.QueueStatus]:
    async with store.reading() as tx:
        return await processes.queues_since(tx, since)


async def test_the_last_status_of_each_worker_for_a_provider_queue_is_kept(store: Store) -> None:
    await put_statuses(store, status(), status(worker="w2"), status("apple"))
    changed = processes.QueueStatus("w1", "google", "blocked", "no answer", NOW + 9, NOW + 1)
    await put_statuses(store, changed)
    assert await heard(store) == [status("apple"), changed, status(worker="w2")]


async def test_a_provider_queue_that_is_open_again_is_removed_for_this_worker_only(store: Store) -> None:
    await put_statuses(store, status(), status(worker="w2"), status("apple"))
    async with store.transaction() as tx:
        await processes.remove_queues(tx, "w1", ["google", "unknown"])
    assert await heard(store) == [status("apple"), status(worker="w2")]


async def test_a_worker_that_stops_leaves_nothing(store: Store) -> None:
    await put_statuses(store, status(), status(worker="w2"), status("apple"))
    async with store.transaction() as tx:
        await processes.remove_queues_of(tx, "w1")
    assert await heard(store) == [status(worker="w2")]


async def test_workers_that_were_not_heard_of_are_not_shown_and_then_swept(store: Store) -> None:
    await put_statuses(store, status(), status(worker="w2", updated_at=NOW + 10))
    assert await heard(store, NOW + 1) == [status(worker="w2", updated_at=NOW + 10)]
    async with store.transaction() as tx:
        assert await processes.sweep_queues(tx, before=NOW + 10) == 1
        assert await processes.sweep_queues(tx, before=NOW + 10) == 0
    assert await heard(store) == [status(worker="w2", updated_at=NOW + 10)]


async def test_the_time_of_the_database_is_in_microseconds_and_passes(store: Store) -> None:
    async with store.reading() as tx:
        first = await processes.database_time(tx)
        time.sleep(0.005)  # noqa: ASYNC251 - SQLite knows milliseconds
        second = await processes.database_time(tx)
    assert abs(first - time.time_ns() // 1000) < 86_400 * 1_000_000
    assert second > first
