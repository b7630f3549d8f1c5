"""Processes that report themselves: the last report counts, and those that stop reporting are deleted."""

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
